#include "dssync/testbed/namespaces.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "dssync/testbed/error.h"
#include "dssync/testbed/testbed.h"

namespace dssync {
namespace {

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

void write_file(const std::string& file, const std::string& text) {
  const Descriptor out(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (out.get() < 0 || write(out.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw TestbedError(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
  }
}

std::string explained(const std::string& what, int cause) {
  std::string message = fmt::format("{}: {}", what, std::strerror(cause));
  if (cause == EINVAL) return message + " (the process must have a single thread)";
  if (cause == ENOSPC) return message + " (see the limits in /proc/sys/user/max_*_namespaces)";
  const std::string obstacle = user_namespace_obstacle();
  return obstacle.empty() ? message : fmt::format("{} ({})", message, obstacle);
}

// Whether this process may make network namespaces. A child tries: the root of a user namespace could not come back to
// the machine's own network.
bool may_make_networks() {
  const pid_t child = fork();
  if (child < 0) throw TestbedError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (child == 0) _exit(unshare(CLONE_NEWNET) == 0 ? 0 : 1);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

Descriptor open_namespace(const std::string& path) {
  Descriptor result(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (result.get() < 0) throw TestbedError(fmt::format("cannot open the namespace {}: {}", path, std::strerror(errno)));
  return result;
}

void make_network_namespace() {
  if (unshare(CLONE_NEWNET) != 0) throw TestbedError(explained("cannot make a network namespace", errno));
}

bool try_enter(const Space& space) {
  if (space.user >= 0 && setns(space.user, CLONE_NEWUSER) != 0) return false;
  return space.network < 0 || setns(space.network, CLONE_NEWNET) == 0;
}

void enter(const Space& space) {
  if (!try_enter(space)) throw TestbedError(fmt::format("cannot enter a network namespace: {}", std::strerror(errno)));
}

void ensure_network_privileges() {
  if (may_make_networks()) return;
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER) != 0) {
    throw TestbedError(explained("not root, and cannot make a user namespace to be root in", errno));
  }
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", fmt::format("0 {} 1\n", user));
  write_file("/proc/self/gid_map", fmt::format("0 {} 1\n", group));
}

std::string user_namespace_obstacle() {
  if (first_line("/proc/sys/kernel/unprivileged_userns_clone") == "0") {
    return "sysctl kernel.unprivileged_userns_clone is 0: as root, set it to 1";
  }
  if (first_line("/proc/sys/user/max_user_namespaces") == "0") {
    return "sysctl user.max_user_namespaces is 0: as root, raise it";
  }
  if (first_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1") {
    return "sysctl kernel.apparmor_restrict_unprivileged_userns is 1: as root, set it to 0";
  }
  if (access("/proc/self/ns/user", F_OK) != 0) return "the kernel has no user namespaces";
  return "";
}

}  // namespace dssync
