// Quoting and guessing for messages.
#include "dssync/base/text.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace dssync {
namespace {

constexpr std::size_t kLongestQuote = 60;

// Cuts at a character, not inside a UTF-8 sequence.
std::string_view cut(std::string_view text) {
  if (text.size() <= kLongestQuote) return text;
  std::size_t end = kLongestQuote;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

// Levenshtein's distance. REQUIRES: short texts.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string quote(std::string_view text) {
  const std::string_view shown = cut(text);
  std::string result = "\"";
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  result += shown.size() < text.size() ? "...\"" : "\"";
  return result;
}

std::string_view nearest(std::string_view text, std::span<const std::string_view> known) {
  constexpr std::size_t kLongestGuess = 32;
  if (text.empty() || text.size() > kLongestGuess) return {};
  const std::string lower = lower_case(text);
  std::string_view best;
  std::size_t best_distance = text.size() <= 3 ? 2 : 3;  // exclusive
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(lower, lower_case(candidate));
    if (distance < std::min(best_distance, candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

}  // namespace dssync
