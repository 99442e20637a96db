#include "dssync/testbed/processes.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <poll.h>
#include <set>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/testbed/error.h"
#include "dssync/testbed/namespaces.h"

namespace dssync {
namespace {

constexpr std::chrono::milliseconds kKillPatience{5000};

std::vector<pid_t> all_processes() {
  std::vector<pid_t> result;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    const std::string name = entry.path().filename();
    pid_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) result.push_back(number);
  }
  return result;
}

bool has_mark(pid_t process, const std::string& mark) {
  std::set<std::string> missing;
  std::istringstream addresses(mark);
  for (std::string address; addresses >> address;) missing.insert(address);
  std::ifstream table(fmt::format("/proc/{}/net/fib_trie", process));
  for (std::string line; std::getline(table, line) && !missing.empty();) {
    constexpr std::string_view kLeaf = "|-- ";
    const std::size_t leaf = line.find(kLeaf);
    if (leaf != std::string::npos) missing.erase(line.substr(leaf + kLeaf.size()));
  }
  return !mark.empty() && missing.empty();
}

// A handle on the process that stays its own when the number is used again; empty where it has ended.
Descriptor handle_of(pid_t process) { return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0))); }

void send_signal(const Descriptor& handle, int signal) {
  syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
}

bool ends_within(const Descriptor& handle, std::chrono::milliseconds patience) {
  pollfd watched{handle.get(), POLLIN, 0};
  return poll(&watched, 1, static_cast<int>(patience.count())) == 1;
}

struct ProcessState {
  std::uint64_t flags = 0;
  std::uint64_t start = 0;  // 0: there is none, or it has ended
};

ProcessState state_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may hold anything, brackets as well
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  fields >> field;  // the third: the state
  if (field == "Z" || field == "X") return {};
  ProcessState state;
  for (int i = 4; i < 9; ++i) fields >> field;
  fields >> state.flags;
  for (int i = 10; i < 22; ++i) fields >> field;
  fields >> state.start;
  return fields ? state : ProcessState{};
}

}  // namespace

std::uint64_t process_start(pid_t process) { return state_of(process).start; }

bool is_ending(pid_t process) {
  const ProcessState state = state_of(process);
  constexpr std::uint64_t kExiting = 4;  // PF_EXITING of the kernel
  return state.start == 0 || (state.flags & kExiting) != 0;
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::vector<pid_t> processes_marked(const std::string& mark) {
  std::map<ino_t, bool> known;  // by namespace
  std::vector<pid_t> result;
  for (const pid_t process : all_processes()) {
    struct stat space {};
    if (process == getpid() || stat(fmt::format("/proc/{}/ns/net", process).c_str(), &space) != 0) continue;
    const auto [entry, is_new] = known.try_emplace(space.st_ino, false);
    if (is_new) entry->second = has_mark(process, mark);
    if (entry->second) result.push_back(process);
  }
  return result;
}

bool end_process(pid_t process, std::uint64_t start, std::chrono::milliseconds patience) {
  const Descriptor handle = handle_of(process);
  if (handle.get() < 0 || process_start(process) != start) return true;
  send_signal(handle, SIGTERM);
  if (ends_within(handle, patience)) return true;
  send_signal(handle, SIGKILL);
  return ends_within(handle, kKillPatience);
}

int end_marked(const std::string& mark) {
  const auto deadline = std::chrono::steady_clock::now() + kKillPatience;
  std::set<pid_t> ended;
  while (true) {
    const std::vector<pid_t> found = processes_marked(mark);
    if (found.empty()) return static_cast<int>(ended.size());
    if (std::chrono::steady_clock::now() > deadline) {
      throw TestbedError(fmt::format("could not end the processes {}", fmt::join(found, ", ")));
    }
    for (const pid_t process : found) {
      const Descriptor handle = handle_of(process);
      if (handle.get() < 0 || !has_mark(process, mark)) continue;
      send_signal(handle, SIGKILL);
      ended.insert(process);
      ends_within(handle, std::chrono::milliseconds(200));
    }
  }
}

}  // namespace dssync
