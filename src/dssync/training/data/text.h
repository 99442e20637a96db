// Text as a sequence of bytes, cut into windows; from each of its bytes the next one has to be told. The text is the
// sources of Python's standard library, which Debian has on nearly every machine.
#pragma once

#include <filesystem>
#include <string>

#include "dssync/training/data/dataset.h"

namespace dssync {

// Bytes 0 to 126 stand for themselves; the last symbol is any other byte.
inline constexpr std::int64_t kTextSymbols = 128;

// Windows that follow each other without a gap. In the first epoch they begin with the text; in every later one all of
// them are shifted by a number of bytes that is drawn from the epoch's number.
class TextSet final : public Dataset {
 public:
  // Throws InputError, with `what`, where the text is too short for one window.
  TextSet(const std::string& text, std::int64_t context, const std::string& what);

  std::int64_t size() const override;
  // Both int64, examples x context: symbols, and the symbol after each of them.
  Batch batch(const at::Tensor& indices, std::int64_t epoch) const override;

  // Keeps the first windows only. Throws InputError where there are not so many.
  void cut(std::int64_t windows, const std::string& what);

 private:
  std::int64_t shift(std::int64_t epoch) const;

  at::Tensor symbols_;  // uint8
  std::int64_t context_;
  std::int64_t windows_;
};

struct TextSets {
  TextSet train;
  TextSet test;
};

// Where Debian has the newest Python's standard library: /usr/lib/python3.N. Throws InputError that says which package
// brings it where there is none.
std::filesystem::path standard_library_folder(const std::filesystem::path& parent = "/usr/lib");

// Of the files FOLDER/*.py, sorted by name: each twentieth, the first among them, is for testing, the others for
// training. Links and subfolders are left out. Throws InputError where the folder has less than a window for each.
TextSets load_text(const std::filesystem::path& folder, std::int64_t context);

}  // namespace dssync
