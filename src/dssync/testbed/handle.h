// A testbed that another process built: how `dssync testbed` looks at it, enters it and changes it. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "dssync/testbed/record.h"

namespace dssync {

// A link as it is now.
struct LinkState {
  std::string name;
  Bandwidth capacity;         // by the topology
  Bandwidth rate;             // now
  std::uint64_t bytes = 0;    // carried so far
  std::uint64_t dropped = 0;  // frames, because the queue was full
};

class TestbedHandle {
 public:
  // The one with this name; for an empty name the only one there is. Throws InputError where there is none, or several
  // to choose from, naming those that run.
  static TestbedHandle find(const std::string& name, const Registry& registry = Registry::of_user());

  explicit TestbedHandle(TestbedRecord record) : record_(std::move(record)) {}

  const TestbedRecord& record() const { return record_; }

  // The host with this name. Throws InputError, with a guess at what was meant.
  NodeId host(const std::string& name) const;
  // "rack-a up", or both directions for "rack-a". Throws InputError, with a guess at what was meant.
  std::vector<LinkId> links(const std::string& name) const;

  // The calling process moves to that host. Throws TestbedError where the testbed has just ended.
  void enter(NodeId host) const;

  // The link carries so much from now on. Throws InputError for a rate that cannot be emulated.
  void reshape(LinkId link, Bandwidth rate) const;
  Bandwidth rate(LinkId link) const;

  // Of every link, by LinkId.
  std::vector<LinkState> traffic() const;

 private:
  TestbedRecord record_;
};

// What ending a testbed took.
struct EndedTestbed {
  std::string name;
  bool was_left_over = false;  // its builder had been killed
  int processes = 0;           // that were in it, with the builder
};

// Ends the builder (SIGTERM, then SIGKILL) and every process in the testbed's namespaces, and removes its record.
EndedTestbed end_testbed(const TestbedRecord& record, const Registry& registry);

}  // namespace dssync
