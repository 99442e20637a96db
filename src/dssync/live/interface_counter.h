// What the network interface of this worker has carried so far, whoever sent it: by that a worker sees that others use
// its host's network. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "dssync/base/interface_bytes.h"

namespace dssync {

class InterfaceCounter {
 public:
  // Of the interface that GLOO_SOCKET_IFNAME names, or that has this address. It counts nothing where there is none, or
  // for loopback, where everything on the machine goes through.
  explicit InterfaceCounter(const std::string& address);

  // Nothing where nothing is counted.
  std::optional<InterfaceBytes> read() const;

 private:
  std::string interface_;  // empty: none
};

}  // namespace dssync
