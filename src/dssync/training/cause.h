// What to tell of an exception that is not our own.
#pragma once

#include <exception>
#include <string>

#include <c10/util/Exception.h>

namespace dssync {

// Of libtorch's errors the message alone, without the stack of calls.
inline std::string cause_of(const std::exception& error) {
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error)) return torch->what_without_backtrace();
  return error.what();
}

}  // namespace dssync
