#include "dssync/base/interface_bytes.h"

#include <sstream>

namespace dssync {

std::map<std::string, InterfaceBytes> interface_bytes(const std::string& proc_net_dev) {
  std::map<std::string, InterfaceBytes> result;
  std::istringstream lines(proc_net_dev);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream device(line.substr(0, colon));
    std::istringstream columns(line.substr(colon + 1));
    std::string name;
    device >> name;
    InterfaceBytes bytes;
    std::uint64_t skipped = 0;
    columns >> bytes.received;
    for (int i = 0; i < 7; ++i) columns >> skipped;
    if (columns >> bytes.sent) result[name] = bytes;
  }
  return result;
}

}  // namespace dssync
