#include "dssync/testbed/background_traffic.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <optional>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include "dssync/base/error.h"
#include "dssync/testbed/error.h"
#include "dssync/testbed/namespaces.h"
#include "dssync/testbed/shaping.h"

namespace dssync {
namespace {

constexpr double kHeaders = 14 + 20 + 8;  // Ethernet, IP, UDP
constexpr double kDatagramSeconds = 1e-3;
constexpr int kWaiting = 32'000'000;  // bytes that may wait to be sent: more than a link's queue holds

struct Pair {
  NodeId from = kNone;
  NodeId to = kNone;
  Bandwidth room;  // of the links between them, without the one in question
  std::size_t hops = 0;
};

std::optional<Pair> best_pair(const Blueprint& plan, LinkId link) {
  std::optional<Pair> best;
  for (const HostPlan& from : plan.hosts) {
    for (const HostPlan& to : plan.hosts) {
      const std::vector<LinkId> links = links_between(plan, from.node, to.node);
      if (std::find(links.begin(), links.end(), link) == links.end()) continue;
      Pair pair{.from = from.node, .to = to.node, .room = kMaxLinkRate, .hops = links.size()};
      for (const LinkId other : links) {
        if (other != link) pair.room = std::min(pair.room, plan.links[static_cast<std::size_t>(other)].capacity);
      }
      const bool is_better = !best || pair.room > best->room || (pair.room == best->room && pair.hops < best->hops);
      if (is_better) best = pair;
    }
  }
  return best;
}

sockaddr_in address_of(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

[[noreturn]] void receive(int socket) {
  std::array<char, 65536> datagram{};
  while (true) {
    if (recv(socket, datagram.data(), datagram.size(), 0) < 0 && errno != EINTR) _exit(1);
  }
}

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Datagrams wait in the queue of the host's link with the frames of others. With the usual buffer, which they would
// fill there, they would be held back as TCP is. More of it takes privileges outside of a user namespace, or one has
// less.
void let_much_wait(int socket) {
  if (setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &kWaiting, sizeof kWaiting) == 0) return;
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kWaiting, sizeof kWaiting);
}

// Datagrams of a millisecond each, as far as frames are large enough, at even intervals. One that could not be sent in
// time is left out: traffic that was late would come as a burst.
[[noreturn]] void send_evenly(int socket, Bandwidth rate) {
  const double frame = std::clamp(rate.bytes_per_second * kDatagramSeconds, 500.0, kMtu + 14.0);
  const std::vector<char> datagram(static_cast<std::size_t>(frame - kHeaders));
  const double interval = (static_cast<double>(datagram.size()) + kHeaders) / rate.bytes_per_second;
  double due = now();
  while (true) {
    const double wait = due - now();
    if (wait > 0) {
      const double whole = std::floor(wait);
      const timespec pause{.tv_sec = static_cast<time_t>(whole), .tv_nsec = static_cast<long>((wait - whole) * 1e9)};
      nanosleep(&pause, nullptr);
    }
    const bool is_refused = send(socket, datagram.data(), datagram.size(), MSG_NOSIGNAL) < 0;
    if (is_refused && errno != ENOBUFS && errno != EINTR && errno != ECONNREFUSED) _exit(1);
    due = std::max(due + interval, now() - 20e-3);
  }
}

// Forks a process that ends with this one.
template <typename Work>
pid_t start_process(const Work& work) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw TestbedError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_IGN);  // the parent decides
  std::signal(SIGTERM, SIG_DFL);
  try {
    work();
  } catch (...) {
  }
  _exit(1);
}

}  // namespace

BackgroundTraffic::~BackgroundTraffic() {
  for (const pid_t process : processes_) kill(process, SIGKILL);
  for (const pid_t process : processes_) waitpid(process, nullptr, 0);
}

Flow BackgroundTraffic::start(LinkId link, Bandwidth rate) {
  const Blueprint& plan = testbed_.record().blueprint;
  const std::string& name = plan.links[static_cast<std::size_t>(link)].name;
  const std::optional<Pair> pair = best_pair(plan, link);
  if (!pair) throw InputError(fmt::format("no traffic can cross {}: there is no host on its other side", name));
  if (rate > pair->room) {
    throw InputError(fmt::format("no host can send {} over {}; the most is {}", format_bandwidth(rate), name,
                                 format_bandwidth(pair->room)));
  }
  const auto name_of = [&](NodeId host) { return plan.nodes[static_cast<std::size_t>(host)].name; };
  const Flow flow{.from = name_of(pair->from), .to = name_of(pair->to)};
  if (rate.bytes_per_second <= 0) return flow;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw TestbedError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  processes_.push_back(start_process([&] {
    testbed_.enter(pair->to);
    const int sink = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = address_of("0.0.0.0", 0);
    socklen_t size = sizeof address;
    if (bind(sink, reinterpret_cast<sockaddr*>(&address), size) != 0) _exit(1);
    if (getsockname(sink, reinterpret_cast<sockaddr*>(&address), &size) != 0) _exit(1);
    const std::uint16_t port = ntohs(address.sin_port);
    if (write(write_end.get(), &port, sizeof port) != sizeof port) _exit(1);
    receive(sink);
  }));
  write_end = Descriptor();
  std::uint16_t port = 0;
  if (read(read_end.get(), &port, sizeof port) != sizeof port) {
    throw TestbedError(fmt::format("cannot start traffic in testbed {}: has it ended?", testbed_.record().name));
  }
  processes_.push_back(start_process([&] {
    testbed_.enter(pair->from);
    const int source = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = address_of(host_plan(plan, pair->to).address, port);
    if (connect(source, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) _exit(1);
    let_much_wait(source);
    send_evenly(source, rate);
  }));
  return flow;
}

bool BackgroundTraffic::has_ended() const {
  return std::any_of(processes_.begin(), processes_.end(), [](pid_t process) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
  });
}

}  // namespace dssync
