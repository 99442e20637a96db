// What a testbed throws where the machine, not the user's input, is in the way.
#pragma once

#include "dssync/base/error.h"

namespace dssync {

// A network of namespaces could not be built, found or changed. The message says what failed, in the words of the
// kernel or of iproute2, and what is missing.
class TestbedError : public Error {
 public:
  using Error::Error;
};

}  // namespace dssync
