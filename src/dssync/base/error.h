// The one family of exceptions that dssync throws. docs/errors.md says what each leaves behind.
#pragma once

#include <stdexcept>
#include <string>

namespace dssync {

// Anything that dssync reports as a failure.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Something that the user gave is wrong: a file, a flag, a value. The message names it and says what was expected.
// The command line answers it with exit status 2; every other Error with 1.
class InputError : public Error {
 public:
  using Error::Error;

  // "FILE:LINE: MESSAGE", or "FILE: MESSAGE" where line is 0. Lines count from 1.
  InputError(const std::string& file, int line, const std::string& message);
};

}  // namespace dssync
