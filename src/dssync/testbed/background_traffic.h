// Traffic of somebody else on a link of a testbed: UDP at an even rate, which does not give way as TCP would, so that
// what is left for others is known. Not thread-safe.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "dssync/testbed/handle.h"

namespace dssync {

struct Flow {
  std::string from;  // hosts
  std::string to;
};

class BackgroundTraffic {
 public:
  explicit BackgroundTraffic(const TestbedHandle& testbed) : testbed_(testbed) {}
  ~BackgroundTraffic();  // ends all flows
  BackgroundTraffic(const BackgroundTraffic&) = delete;
  BackgroundTraffic& operator=(const BackgroundTraffic&) = delete;

  // Sends `rate`, frames with their headers, over the link from now on, between two hosts on its two sides: those whose
  // other links have the most room, and of these the nearest. Two processes do it, which the kernel ends with this one;
  // for a rate of zero there are none.
  // Throws InputError where no two hosts can send so much, TestbedError where the testbed has ended.
  Flow start(LinkId link, Bandwidth rate);

  // Whether a process of a flow has ended by itself, or by the testbed's end.
  bool has_ended() const;

 private:
  const TestbedHandle& testbed_;
  std::vector<pid_t> processes_;
};

}  // namespace dssync
