// How text looks on this terminal (box drawing or plain ASCII, colour or none), and the measures that aligned text
// needs. Colour codes have no width, so pad first and paint then. Plain functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dssync::cli {

inline constexpr std::size_t kPageWidth = 100;

struct Glyphs {
  const char* branch;    // a child that has siblings below it
  const char* last;      // the last child
  const char* pipe;      // beside the children of a branch
  const char* alone;     // a worker that averages with nobody
  const char* rule;      // one column of a horizontal line
  const char* full;      // one column of a bar
  const char* more;      // shade: at least half
  const char* less;      // shade: below half
  const char* ellipsis;  // stands for what was cut
  const char* pointer;   // marks a row
};

enum class Tint { kNone, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

struct Style {
  bool utf8 = false;
  bool color = false;

  const Glyphs& glyphs() const;
  std::string paint(std::string_view text, Tint tint) const;
  // A bar of `fraction` (0 to 1) of `columns`; never empty for a positive fraction.
  std::string bar(double fraction, std::size_t columns) const;
};

// Whether the environment (LC_ALL, LC_CTYPE, LANG) asks for UTF-8.
bool locale_is_utf8();

// The columns that UTF-8 text takes, one per code point.
std::size_t width(std::string_view text);
std::string pad_right(std::string text, std::size_t columns);
std::string pad_left(std::string text, std::size_t columns);
// At most `columns` wide, with an ellipsis for what was cut.
std::string clip(std::string text, std::size_t columns, const Style& style);
// Breaks a paragraph between words into lines of at most kPageWidth, the first after `first`, the others after `rest`.
// Each line ends in a newline.
std::string wrap(std::string_view paragraph, std::string_view first, std::string_view rest);

// Names come from files: control characters become '?', so that no file can steer the terminal.
std::string printable(std::string_view name);

// "1 host", "4 hosts"; switch -> switches.
std::string counted(std::size_t number, std::string_view noun);

}  // namespace dssync::cli
