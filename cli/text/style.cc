#include "text/style.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace dssync::cli {
namespace {

constexpr Glyphs kUnicode = {"├─ ", "└─ ", "│  ", "·", "─", "█", "▒", "░", "…", "▶"};
constexpr Glyphs kAscii = {"|- ", "`- ", "|  ", ".", "-", "#", "+", ":", "...", ">"};

constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

const char* code_of(Tint tint) {
  switch (tint) {
    case Tint::kNone:
      return "0";
    case Tint::kBold:
      return "1";
    case Tint::kDim:
      return "2";
    case Tint::kRed:
      return "31";
    case Tint::kGreen:
      return "32";
    case Tint::kYellow:
      return "33";
    case Tint::kBlue:
      return "34";
    case Tint::kMagenta:
      return "35";
    case Tint::kCyan:
      return "36";
  }
  return "0";
}

bool continues_code_point(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

std::string repeat(const char* text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace

const Glyphs& Style::glyphs() const { return utf8 ? kUnicode : kAscii; }

std::string Style::paint(std::string_view text, Tint tint) const {
  if (!color || tint == Tint::kNone || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(tint), text);
}

std::string Style::bar(double fraction, std::size_t columns) const {
  const double length = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(columns);
  if (!(length > 0)) return "";
  if (!utf8) return repeat(kAscii.full, std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(length))));
  const auto eighths = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(length * 8)));
  return repeat(kUnicode.full, eighths / 8) + kEighths[eighths % 8];
}

bool locale_is_utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    std::string lower = value;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

std::size_t width(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_code_point));
}

std::string pad_right(std::string text, std::size_t columns) {
  const std::size_t used = width(text);
  if (used < columns) text.append(columns - used, ' ');
  return text;
}

std::string pad_left(std::string text, std::size_t columns) {
  const std::size_t used = width(text);
  if (used < columns) text.insert(0, columns - used, ' ');
  return text;
}

std::string clip(std::string text, std::size_t columns, const Style& style) {
  if (width(text) <= columns) return text;
  const std::string ellipsis = style.glyphs().ellipsis;
  std::size_t keep = columns > width(ellipsis) ? columns - width(ellipsis) : 0;
  std::size_t end = 0;
  while (end < text.size() && (keep > 0 || continues_code_point(text[end]))) {
    if (!continues_code_point(text[end])) --keep;
    ++end;
    while (end < text.size() && continues_code_point(text[end])) ++end;
  }
  return text.substr(0, end) + ellipsis;
}

std::string wrap(std::string_view paragraph, std::string_view first, std::string_view rest) {
  std::string result;
  std::string line(first);
  bool empty = true;
  while (!paragraph.empty()) {
    const std::size_t end = std::min(paragraph.find(' '), paragraph.size());
    const std::string_view word = paragraph.substr(0, end);
    paragraph.remove_prefix(std::min(end + 1, paragraph.size()));
    if (!empty && width(line) + 1 + width(word) > kPageWidth) {
      result += line + "\n";
      line = rest;
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  return result + line + "\n";
}

std::string printable(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return result;
}

std::string counted(std::size_t number, std::string_view noun) {
  const bool hisses = noun.ends_with("ch") || noun.ends_with("s");
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : hisses ? "es" : "s");
}

}  // namespace dssync::cli
