// For tests: process groups whose members are connected in memory, within one process and without Gloo. A test says
// which operations are held up or fail, and sees in which order each member started its operations.
//
// Operations are matched by their order: number k of one member with number k of the others. They move their data when
// all members have started them, in the thread of the last one, and end there. Thread-safe.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "dssync/comm/c10d/c10d.h"

namespace dssync::testing {

class FakeChannel;

// One operation as a member started it.
struct FakeOperation {
  std::string kind;           // "all-to-all", "all-reduce", "broadcast"
  std::int64_t elements = 0;  // that the member gave

  bool operator==(const FakeOperation&) const = default;
};

// A process group with all its members. The channels keep what they share alive.
class FakeGroup {
 public:
  explicit FakeGroup(int size);

  // A member's end of the group.
  Channel channel(int member) const;

  // Of operation number `operation` (from 0) of a member, before it is started:
  // - its data move, but it does not end at this member before release() or cut();
  void hold(int member, std::size_t operation);
  // - it ends with release() alone, not even with cut(), as Gloo's sends to a connection that was closed;
  void stick(int member, std::size_t operation);
  // - it ends with this error, and the others wait for it in vain until somebody cuts the group;
  void fail(int member, std::size_t operation, std::exception_ptr error);
  // - the call that starts it throws this error. The next call counts as the same number.
  void refuse(int member, std::size_t operation, std::exception_ptr error);

  // Ends what hold() or stick() held up, now or when it is started.
  void release(int member, std::size_t operation);

  // All that has not ended, and all that starts later, fails at every member: what cut() of a member's channel does.
  void cut();
  bool is_cut() const;

  // What a member has started, in its order.
  std::vector<FakeOperation> started(int member) const;

  // Return when the member has started so many operations; and when this one has ended at the member.
  void await_started(int member, std::size_t operations) const;
  void await_end(int member, std::size_t operation) const;

 private:
  class State;
  friend class FakeChannel;
  std::shared_ptr<State> state_;
};

}  // namespace dssync::testing
