#include "dssync/base/name_pattern.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include <fmt/format.h>

namespace dssync {
namespace {

// A name cut into texts and numbers, in turn: "r0h12" -> "r", "0", "h", "12".
using Parts = std::vector<std::string>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Parts parts_of(const std::string& name) {
  Parts parts(1);
  bool in_number = false;
  for (const char c : name) {
    if (is_digit(c) != in_number) {
      parts.emplace_back();
      in_number = !in_number;
    }
    parts.back() += c;
  }
  return parts;
}

// Whether "[a-b]" means both and nothing else: "9" and "10", "09" and "10", but not "9" and "010".
bool follows(const std::string& a, const std::string& b) {
  const auto value = [](const std::string& text) {
    long long result = 0;
    std::from_chars(text.data(), text.data() + text.size(), result);
    return result;
  };
  const bool same_padding = a.size() == b.size() || (a.size() < b.size() && b.front() != '0');
  return same_padding && b.size() < 18 && value(b) == value(a) + 1;
}

// {"0", "1", "2", "7"} -> "[0-2,7]".
std::string range_of(const std::vector<std::string>& numbers) {
  if (numbers.size() == 1) return numbers.front();
  std::string result = "[";
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && follows(numbers[end - 1], numbers[end])) ++end;
    if (i > 0) result += ',';
    result += end - i > 1 ? numbers[i] + "-" + numbers[end - 1] : numbers[i];
    i = end;
  }
  return result + "]";
}

// Merges the names that differ in part `at` only.
std::vector<Parts> fold_part(const std::vector<Parts>& names, std::size_t at) {
  std::vector<Parts> result;
  std::vector<std::vector<std::string>> numbers;
  std::unordered_map<std::string, std::size_t> seen;
  for (const Parts& name : names) {
    std::string key;
    for (std::size_t i = 0; i < name.size(); ++i) key += i == at ? std::string("\n") : name[i] + "\t";
    if (name.size() <= at) key += "\n\n";
    const auto [place, is_new] = seen.emplace(key, result.size());
    if (is_new) {
      result.push_back(name);
      numbers.emplace_back();
    }
    if (at < name.size()) numbers[place->second].push_back(name[at]);
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (at < result[i].size()) result[i][at] = range_of(numbers[i]);
  }
  return result;
}

}  // namespace

std::vector<std::string> fold_names(const std::vector<std::string>& names) {
  std::vector<Parts> parts;
  std::size_t longest = 0;
  for (const std::string& name : names) {
    parts.push_back(parts_of(name));
    longest = std::max(longest, parts.back().size());
  }
  for (std::size_t at = longest; at-- > 0;) {
    if (at % 2 == 1) parts = fold_part(parts, at);
  }
  std::vector<std::string> result;
  for (const Parts& name : parts) result.push_back(fmt::format("{}", fmt::join(name, "")));
  return result;
}

}  // namespace dssync
