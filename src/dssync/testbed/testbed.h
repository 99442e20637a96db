// A topology as a real network on this machine: every host is a network namespace of Linux, every switch a bridge,
// every cable a pair of interfaces whose rates are limited in both directions. docs/testbed.md explains it.
//
// Nothing has a global name, and nothing is in the machine's own network namespace. The process that builds a testbed
// moves into a namespace of its own, the *fabric*, which has all bridges, and holds the hosts' namespaces by
// descriptors. So any number of testbeds exist at once, and the kernel removes them with the last process in them,
// however that ended.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dssync/testbed/error.h"
#include "dssync/topology/topology.h"

namespace dssync {

// Moves the calling process to a user namespace of its own, as whose root it may build testbeds, unless it may already.
// The constructor of Testbed does that by itself; a program whose libraries start threads before main() needs it
// earlier, in the program that starts it. Throws TestbedError that names what forbids it. REQUIRES: a single thread,
// unless root.
void ensure_network_privileges();

class Testbed {
 public:
  // Builds it and moves the calling thread, which must be the main one, into the fabric. Other processes then find it
  // under `name`; if that is empty, one is made up. `source` tells them where the topology is from.
  //
  // Throws TestbedError that says all that this machine lacks, InputError for a topology that cannot be emulated or a
  // name that is taken. Then nothing is left, but that a process without root's rights stays in a user namespace of its
  // own. REQUIRES: a single thread, unless root.
  explicit Testbed(const Topology& topology, const std::string& name = "", const std::string& source = "");

  // Nobody finds it any more, and the calling thread moves back where it was, if it was root there. The network itself
  // vanishes with the last process in it. Does nothing in a process that was forked from the builder.
  ~Testbed();
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  const std::string& name() const;

  // The calling thread moves to that host, where its interface is `eth0`. For processes forked from the builder.
  void enter(NodeId host) const;

  std::string address_of(NodeId host) const;  // "10.77.0.5"
  // Of the process that built it, for servers that all hosts reach.
  std::string fabric_address() const;

  // The link carries so much from now on. Throws InputError for a rate that cannot be emulated.
  void reshape(LinkId link, Bandwidth rate) const;

  // That every link has carried so far, by LinkId, counted in frames with their headers. Works as well in a process
  // that was forked from the builder and has entered a host, as long as the builder lives.
  std::vector<std::uint64_t> bytes() const;

 private:
  class Network;
  std::unique_ptr<Network> network_;
};

}  // namespace dssync
