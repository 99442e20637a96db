// Places in messages.
#include "dssync/base/error.h"

namespace dssync {
namespace {

std::string at_place(const std::string& file, int line, const std::string& message) {
  if (line <= 0) return file + ": " + message;
  return file + ":" + std::to_string(line) + ": " + message;
}

}  // namespace

InputError::InputError(const std::string& file, int line, const std::string& message)
    : Error(at_place(file, line, message)) {}

}  // namespace dssync
