// What every reader asks of a file before it looks inside. Internal to the readers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dssync {

inline constexpr std::size_t kMaxFileBytes = 8'000'000;

// The text without its byte order mark. Throws InputError unless it is UTF-8 without NUL bytes or other control
// characters and at most kMaxFileBytes long.
std::string_view checked_text(std::string_view text, const std::string& source);

}  // namespace dssync
