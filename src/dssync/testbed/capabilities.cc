#include "dssync/testbed/capabilities.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "dssync/testbed/error.h"
#include "dssync/testbed/iproute.h"
#include "dssync/testbed/namespaces.h"
#include "dssync/testbed/shaping.h"
#include "dssync/testbed/testbed.h"

namespace dssync {
namespace {

// Adds a sentence where the commands do not work.
void probe(std::vector<std::string>& missing, const std::string& what, const std::string& tool,
           const std::string& commands) {
  try {
    run_batch(tool, commands);
  } catch (const TestbedError& error) {
    missing.push_back(fmt::format("{}: {}", what, error.what()));
  }
}

// Containers may have /proc/sys for reading alone.
void probe_settings(std::vector<std::string>& missing) {
  for (const auto& [file, value] : tcp_settings(Bandwidth())) {
    const std::string path = "/proc/sys/net/" + file;
    const Descriptor out(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (out.get() >= 0 || errno == ENOENT) continue;
    missing.push_back(fmt::format("TCP cannot be set up: cannot write to {}: {}", path, std::strerror(errno)));
    return;
  }
}

void probe_kernel(std::vector<std::string>& missing, const std::vector<std::string>& latencies) {
  try {
    ensure_network_privileges();
    make_network_namespace();
  } catch (const TestbedError& error) {
    missing.emplace_back(error.what());
    return;
  }
  probe_settings(missing);
  probe(missing, "the kernel has no pairs of virtual interfaces (veth)", "ip",
        "link add name p0 type veth peer name p1\n");
  probe(missing, "the kernel has no bridges", "ip", "link add name p2 type bridge\n");
  const std::size_t before = missing.size();
  probe(missing, "the kernel cannot limit rates (sch_htb)", "tc",
        "qdisc add dev lo root handle 1: htb\nclass add dev lo parent 1: classid 1:1 htb rate 1mbit\n");
  if (missing.size() == before) {
    probe(missing, "the kernel cannot tell packets apart (cls_u32)", "tc",
          "filter add dev lo parent 1: protocol ip u32 match ip protocol 6 0xff flowid 1:1\n");
  }
  if (latencies.empty()) return;
  std::vector<std::string> without;
  probe(without, "", "tc", "qdisc replace dev lo root netem delay 1ms\n");
  if (without.empty()) return;
  const std::string others = latencies.size() > 1 ? fmt::format(" and {} more links", latencies.size() - 1) : "";
  missing.push_back(
      fmt::format("the kernel cannot delay packets (sch_netem), but {}{} have a latency; with --ignore-latency, or "
                  "without 'latency:' in the topology file, it would work",
                  latencies.front(), others));
}

std::string read_all(int pipe) {
  std::string text;
  std::array<char, 4096> chunk{};
  ssize_t size = 0;
  while ((size = read(pipe, chunk.data(), chunk.size())) > 0 || (size < 0 && errno == EINTR)) {
    if (size > 0) text.append(chunk.data(), static_cast<std::size_t>(size));
  }
  return text;
}

std::vector<std::string> probe_in_child(const std::vector<std::string>& latencies) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw TestbedError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t child = fork();
  if (child < 0) throw TestbedError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (child == 0) {
    std::vector<std::string> missing;
    try {
      probe_kernel(missing, latencies);
    } catch (const std::exception& error) {
      missing.emplace_back(error.what());
    }
    std::string text = "tried\n";
    for (const std::string& sentence : missing) text += sentence + "\n";
    const bool told = write(write_end.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(told ? 0 : 1);
  }
  write_end = Descriptor();
  std::istringstream lines(read_all(read_end.get()));
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  std::vector<std::string> missing;
  std::string line;
  if (!std::getline(lines, line)) missing.emplace_back("the attempt to find out what the kernel can do was killed");
  while (std::getline(lines, line)) missing.push_back(line);
  return missing;
}

}  // namespace

std::vector<std::string> missing_for_testbed(const std::vector<std::string>& latencies) {
  std::vector<std::string> missing;
  for (const char* program : {"ip", "tc", "bridge"}) {
    if (find_program(program).empty()) missing.push_back(fmt::format("the program '{}': install iproute2", program));
  }
  // Without the programs only the privileges could be tried, and those the error after the installation tells.
  return missing.empty() ? probe_in_child(latencies) : missing;
}

}  // namespace dssync
