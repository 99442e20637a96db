#include "dssync/training/data/text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/training/data/random.h"

namespace dssync {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHowToGetText =
    "the sources of Python's standard library come with `apt install libpython3-stdlib`";
constexpr std::size_t kTestFileEvery = 20;  // about 230 kB of Python 3.11's 4.7 MB

// The minor version in "python3.11", or -1.
int minor_version(const std::string& name) {
  constexpr std::string_view kPrefix = "python3.";
  if (!name.starts_with(kPrefix)) return -1;
  int version = -1;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, version);
  return error == std::errc() && stop == end ? version : -1;
}

std::vector<fs::path> sources_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!entry.is_symlink() && entry.is_regular_file() && entry.path().extension() == ".py") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_whole(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream && !stream.eof()) throw InputError(file, 0, "cannot be read");
  return text;
}

}  // namespace

TextSet::TextSet(const std::string& text, std::int64_t context, const std::string& what)
    // One byte more than the windows themselves, and as many as they may be shifted by.
    : context_(context), windows_(static_cast<std::int64_t>(text.size()) / context - 1) {
  if (windows_ < 1) {
    throw InputError(fmt::format("{} bytes of {} text are not enough for windows of {}", text.size(), what, context));
  }
  symbols_ = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::transform(text.begin(), text.end(), symbols_.data_ptr<std::uint8_t>(), [](char byte) {
    return std::min(static_cast<std::uint8_t>(byte), static_cast<std::uint8_t>(kTextSymbols - 1));
  });
}

std::int64_t TextSet::size() const { return windows_; }

std::int64_t TextSet::shift(std::int64_t epoch) const {
  if (epoch == 0) return 0;
  return static_cast<std::int64_t>(
      Random(static_cast<std::uint64_t>(epoch)).below(static_cast<std::uint64_t>(context_)));
}

Batch TextSet::batch(const at::Tensor& indices, std::int64_t epoch) const {
  const at::Tensor starts = (indices * context_ + shift(epoch)).unsqueeze(1);
  const at::Tensor windows = symbols_.take(starts + at::arange(context_ + 1, at::kLong)).to(at::kLong);
  return {windows.slice(1, 0, context_), windows.slice(1, 1, context_ + 1)};
}

void TextSet::cut(std::int64_t windows, const std::string& what) {
  if (windows == 0) return;
  if (windows < 0 || windows > windows_) {
    throw InputError(
        fmt::format("{} {} examples of text were asked for; it has {} of {} bytes", windows, what, windows_, context_));
  }
  windows_ = windows;
}

fs::path standard_library_folder(const fs::path& parent) {
  fs::path newest;
  int version = -1;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    const int found = minor_version(entry.path().filename().string());
    if (found > version && !sources_in(entry.path()).empty()) {
      version = found;
      newest = entry.path();
    }
  }
  if (newest.empty()) throw InputError(parent, 0, fmt::format("has no python3.* with *.py files: {}", kHowToGetText));
  return newest;
}

TextSets load_text(const fs::path& folder, std::int64_t context) {
  const std::vector<fs::path> files = sources_in(folder);
  if (files.size() < 2) {
    throw InputError(folder, 0, fmt::format("has {} *.py files, expected at least 2: {}", files.size(), kHowToGetText));
  }
  std::string train;
  std::string test;
  for (std::size_t index = 0; index < files.size(); ++index) {
    (index % kTestFileEvery == 0 ? test : train) += read_whole(files[index]);
  }
  return {TextSet(train, context, "training"), TextSet(test, context, "test")};
}

}  // namespace dssync
