// How busy this machine's CPUs are. Thread-safe.
#pragma once

#include <istream>

namespace dssync {

// Of all CPUs together since the machine started, in the kernel's ticks.
struct CpuTime {
  double busy = 0;
  double total = 0;
};

// The first line of /proc/stat; zeros where it has another form.
CpuTime read_cpu_time(std::istream& proc_stat);
CpuTime cpu_time_now();

// The part of the time between the two in which CPUs were busy, 0 to 1; 0 where no tick has passed.
double busy_share(const CpuTime& from, const CpuTime& to);

}  // namespace dssync
