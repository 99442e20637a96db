#include "dssync/benchmark/cpu_time.h"

#include <fstream>
#include <string>

namespace dssync {

CpuTime read_cpu_time(std::istream& proc_stat) {
  std::string name;
  double user = 0;
  double nice = 0;
  double system = 0;
  double idle = 0;
  double iowait = 0;
  double irq = 0;
  double softirq = 0;
  double steal = 0;  // by other virtual machines: not idle either
  proc_stat >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  if (!proc_stat || name != "cpu") return {};
  const double busy = user + nice + system + irq + softirq + steal;
  return {busy, busy + idle + iowait};
}

CpuTime cpu_time_now() {
  std::ifstream proc_stat("/proc/stat");
  return read_cpu_time(proc_stat);
}

double busy_share(const CpuTime& from, const CpuTime& to) {
  const double passed = to.total - from.total;
  return passed > 0 ? (to.busy - from.busy) / passed : 0;
}

}  // namespace dssync
