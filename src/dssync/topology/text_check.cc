// Tells text from noise in one pass.
#include "dssync/topology/text_check.h"

#include <cstdint>

#include <fmt/format.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; }

// The length of the UTF-8 sequence at the front of the text, 0 if there is none. Refuses overlong forms and surrogates.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  std::uint32_t code = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? 0 : length;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F;
}

void check_bytes(std::string_view text, const std::string& source) {
  int line = 1;
  for (std::size_t at = 0; at < text.size();) {
    if (is_control(text[at])) {
      throw InputError(
          source, line,
          fmt::format("there is a byte 0x{:02x}; expected text in UTF-8", static_cast<unsigned char>(text[at])));
    }
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) throw InputError(source, line, "there are bytes that are not UTF-8; expected text in UTF-8");
    if (text[at] == '\n') ++line;
    at += length;
  }
}

}  // namespace

std::string_view checked_text(std::string_view text, const std::string& source) {
  const bool too_large = text.size() > kMaxFileBytes;
  std::size_t end = too_large ? kMaxFileBytes : text.size();
  while (too_large && is_continuation(text[end])) --end;
  check_bytes(text.substr(0, end), source);
  if (too_large) {
    throw InputError(source, 0,
                     fmt::format("the file is too large; expected at most {} MB (ranges such as node[0-99] "
                                 "keep it short)",
                                 kMaxFileBytes / 1'000'000));
  }
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

}  // namespace dssync
