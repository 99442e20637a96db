#include "dssync/report/markup.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "dssync/base/units.h"

namespace dssync {
namespace {

constexpr std::string_view kNoBreak = "\u00a0";
constexpr std::string_view kReplacement = "\ufffd";

// The bytes of the UTF-8 character at the front, or 0 where there is none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 && first < 0xF5   ? 4
                           : first >= 0xE0 && first < 0xF0 ? 3
                           : first >= 0xC2 && first < 0xE0 ? 2
                                                           : 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const bool is_overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool is_surrogate = first == 0xED && byte(1) >= 0xA0;
  const bool is_beyond = first == 0xF4 && byte(1) >= 0x90;
  return is_overlong || is_surrogate || is_beyond ? 0 : size;
}

std::string unbroken(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == ' ') {
      result += kNoBreak;
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(size, 1));
    const auto first = static_cast<unsigned char>(text.front());
    const bool is_control = (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F;
    if (size == 0 || is_control) {
      result += kReplacement;
    } else if (first == '&') {
      result += "&amp;";
    } else if (first == '<') {
      result += "&lt;";
    } else if (first == '>') {
      result += "&gt;";
    } else if (first == '"') {
      result += "&quot;";
    } else if (first == '\'') {
      result += "&#39;";
    } else {
      result += character;
    }
    text.remove_prefix(character.size());
  }
  return result;
}

std::string coordinate(double value) {
  const double rounded = std::round(value * 10) / 10;
  return fmt::format("{}", rounded == 0 ? 0.0 : rounded);
}

std::string shown_percent(double share, int decimals) {
  return fmt::format("{:.{}f}{}%", 100 * share, decimals, kNoBreak);
}

std::string shown_seconds(double seconds) {
  const bool is_long = seconds >= 120;
  if (!is_long) return unbroken(format_duration(Seconds(seconds)));
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}{}min{}{:02}{}s", whole / 60, kNoBreak, kNoBreak, whole % 60, kNoBreak);
  return fmt::format("{}{}h{}{:02}{}min", whole / 3600, kNoBreak, kNoBreak, whole % 3600 / 60, kNoBreak);
}

std::string shown_bytes(double bytes) { return unbroken(format_bytes(bytes)); }

std::string shown_rate(double bytes_per_second) { return unbroken(format_bandwidth(Bandwidth{bytes_per_second})); }

std::string shown_ratio(double ratio) {
  if (ratio >= 100) return fmt::format("{:.0f}×", ratio);
  return ratio >= 10 ? fmt::format("{:.1f}×", ratio) : fmt::format("{:.2f}×", ratio);
}

std::string shown_count(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t place = digits.size(); place > first + 3;) {
    place -= 3;
    digits.insert(place, ",");
  }
  return digits;
}

std::string shown_number(double value) { return fmt::format("{:.3g}", value); }

std::string begin_svg(const Drawing& drawing) {
  return fmt::format(
      R"(<svg viewBox="0 0 {} {}" role="img" aria-labelledby="{}-t {}-d" {}><title id="{}-t">{}</title><desc id="{}-d">{}</desc>)",
      coordinate(drawing.width), coordinate(drawing.height), drawing.id, drawing.id, drawing.attributes, drawing.id,
      escaped(drawing.title), drawing.id, escaped(drawing.description));
}

std::string legend_box(std::string_view style, std::string_view name) {
  return fmt::format(
      R"(<span><svg class="swatch" width="14" height="12" viewBox="0 0 14 12" aria-hidden="true"><rect class="{}" x="1" y="1" width="12" height="10"/></svg>{}</span>)",
      style, escaped(name));
}

std::string shortened(std::string_view text, std::size_t limit) {
  std::string result;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count + 1 >= limit && text.size() > character_size(text)) return result + "…";
    const std::size_t size = std::max<std::size_t>(character_size(text), 1);
    result += text.substr(0, size);
    text.remove_prefix(size);
  }
  return result;
}

double text_width(std::string_view text) {
  double width = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) == 0x80) continue;
    const bool is_narrow = c == 'i' || c == 'l' || c == 'j' || c == 't' || c == 'f' || c == '.' || c == ',' || c == ' ';
    const bool is_wide = c == 'm' || c == 'w' || c == 'M' || c == 'W' || c == '%';
    width += is_narrow ? 0.32 : is_wide ? 0.88 : 0.58;
  }
  return width;
}

}  // namespace dssync
