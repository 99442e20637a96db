// What can go wrong between workers. Python knows both by the same names.
#pragma once

#include "dssync/base/error.h"

namespace dssync {

// A worker that others need is gone, silent or failed. The message names the rank and, where known, the cause.
class PeerError : public Error {
 public:
  using Error::Error;
};

// The workers were not given the same thing: model, plan, options. The message names the ranks and the difference.
class AgreementError : public Error {
 public:
  using Error::Error;
};

}  // namespace dssync
