// What all workers decide together: whether they were given the same thing, what they have in common, and that they
// have all come to the same point. Collective, and for one thread: every worker makes the same calls in the same order.
#pragma once

#include <string>
#include <vector>

#include "dssync/comm/arrivals.h"

namespace dssync {

class Agreement {
 public:
  explicit Agreement(Waiting waiting);

  // As World's functions of the same names.
  void agree(const std::string& topic, const std::vector<std::string>& lines);
  std::vector<std::string> common(const std::string& topic, const std::vector<std::string>& lines);
  void barrier(const std::string& name);

 private:
  std::string next_key();
  // Whether this worker is the last one to count here.
  bool is_last(const std::string& key);

  const Waiting waiting_;
  c10d::Store& store_;
  int agreements_ = 0;  // made so far: names the next one
};

}  // namespace dssync
