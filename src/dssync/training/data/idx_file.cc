// Unpacks with zlib directly: its file interface accepts whatever follows the compressed data.
#include "dssync/training/data/idx_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <zlib.h>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;
constexpr int kUnsignedByte = 8;

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InputError(file, 0, fmt::format("cannot be read ({})", std::strerror(errno)));
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  // An empty file sets `bytes` to failed, a directory `stream`.
  if (stream.bad() || bytes.view().empty()) throw InputError(file, 0, "is empty or no file");
  return std::move(bytes).str();
}

// The unpacked bytes of a gzip file, from first to last.
class Inflater {
 public:
  explicit Inflater(const fs::path& file) : file_(file), packed_(bytes_of(file)) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&zlib_, kGzipOnly) != Z_OK) throw Error(file_.string() + ": no memory to unpack it");
    zlib_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    left_ = packed_.size();
  }
  ~Inflater() { inflateEnd(&zlib_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // How many of `count` bytes there were.
  std::size_t read(void* to, std::size_t count) {
    auto* next = static_cast<Bytef*>(to);
    std::size_t missing = count;
    while (missing > 0 && !ended_) missing -= unpack(next + (count - missing), missing);
    return count - missing;
  }

  // Whether the compressed data ended, its checksum was right, and nothing follows.
  void expect_end() {
    Bytef beyond = 0;
    if (read(&beyond, 1) > 0) throw InputError(file_, 0, "goes on after the end of its data");
    if (left_ + zlib_.avail_in > 0) throw InputError(file_, 0, "goes on after the end of the compressed data");
  }

 private:
  std::size_t unpack(Bytef* to, std::size_t count) {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const auto given = static_cast<uInt>(std::min(left_, kMost - zlib_.avail_in));
    zlib_.avail_in += given;
    left_ -= given;
    zlib_.next_out = to;
    const auto room = static_cast<uInt>(std::min(count, kMost));
    zlib_.avail_out = room;
    const int outcome = inflate(&zlib_, Z_NO_FLUSH);
    ended_ = outcome == Z_STREAM_END;
    if (outcome == Z_BUF_ERROR) throw InputError(file_, 0, "is truncated: the compressed data has no end");
    if (outcome != Z_OK && !ended_) {
      throw InputError(file_, 0, fmt::format("is no gzip file or damaged ({})", zlib_.msg ? zlib_.msg : "zlib"));
    }
    return room - zlib_.avail_out;
  }

  fs::path file_;
  std::string packed_;
  std::size_t left_ = 0;  // packed bytes that zlib does not have yet
  z_stream zlib_{};
  bool ended_ = false;
};

std::uint32_t read_number(Inflater& inflater, const fs::path& file) {
  std::array<std::uint8_t, 4> bytes{};
  if (inflater.read(bytes.data(), bytes.size()) < bytes.size()) throw InputError(file, 0, "ends within its header");
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

std::vector<std::int64_t> read_dimensions(Inflater& inflater, const fs::path& file,
                                          const std::vector<std::int64_t>& expected) {
  const std::uint32_t magic = read_number(inflater, file);
  const auto wanted = static_cast<std::uint32_t>(kUnsignedByte << 8 | static_cast<int>(expected.size()));
  if (magic != wanted) {
    throw InputError(file, 0,
                     fmt::format("begins with {:#010x}, expected {:#010x}: unsigned bytes in {} dimension(s)", magic,
                                 wanted, expected.size()));
  }
  std::vector<std::int64_t> found;
  std::int64_t bytes = 1;
  for (const std::int64_t want : expected) {
    found.push_back(read_number(inflater, file));
    if (found.back() == 0 || (want >= 0 && found.back() != want)) {
      throw InputError(file, 0,
                       fmt::format("dimension {} is {}, expected {}", found.size(), found.back(),
                                   want >= 0 ? std::to_string(want) : "at least 1"));
    }
    if (found.back() > kMostBytes / bytes) throw InputError(file, 0, "claims to have more than 4 GiB");
    bytes *= found.back();
  }
  return found;
}

}  // namespace

at::Tensor read_idx(const fs::path& file, const std::vector<std::int64_t>& expected) {
  Inflater inflater(file);
  const auto dimensions = read_dimensions(inflater, file, expected);
  at::Tensor tensor = at::empty(dimensions, at::kByte);
  const auto wanted = static_cast<std::size_t>(tensor.numel());
  const std::size_t found = inflater.read(tensor.data_ptr(), wanted);
  if (found < wanted) {
    throw InputError(file, 0,
                     fmt::format("is truncated: has {} bytes of data, its dimensions ({}) need {}", found,
                                 fmt::join(dimensions, " x "), wanted));
  }
  inflater.expect_end();
  return tensor;
}

}  // namespace dssync
