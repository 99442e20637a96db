// Small helpers for text that people wrote: quoting it in messages and guessing what was meant. Thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dssync {

// The text in double quotes, safe to print: control characters and backslashes are escaped, and a long text is cut.
std::string quote(std::string_view text);

// The one of `known` that `text` is a likely misspelling of (ignoring case), or empty.
std::string_view nearest(std::string_view text, std::span<const std::string_view> known);

// Without leading and trailing spaces, tabs and line ends.
std::string_view trimmed(std::string_view text);

// ASCII only.
std::string lower_case(std::string_view text);

}  // namespace dssync
