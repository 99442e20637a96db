#include "testbed/testbed_contend.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/launch/exit_status.h"
#include "dssync/launch/signal_pipe.h"
#include "dssync/testbed/background_traffic.h"
#include "dssync/testbed/handle.h"
#include "text/style.h"

namespace dssync::cli {
namespace {

using Clock = std::chrono::steady_clock;

void say(const std::string& sentence) { fmt::print(stderr, "dssync testbed contend: {}\n", printable(sentence)); }

SignalPipe::Deadline deadline_after(std::optional<Seconds> duration) {
  if (!duration) return std::nullopt;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(*duration);
}

// The signal that came before the deadline, or 0. Without a deadline it waits for a signal. SIGCHLD counts only where
// `flow` has ended.
int wait_until(SignalPipe& signals, const SignalPipe::Deadline& deadline, BackgroundTraffic* flow = nullptr) {
  while (!deadline || Clock::now() < *deadline) {
    signals.wait(deadline);
    while (const std::optional<int> signal = signals.next()) {
      if (*signal != SIGCHLD) return *signal;
    }
    if (flow != nullptr && flow->has_ended())
      throw Error("the traffic has ended before its time: is the testbed gone?");
  }
  return 0;
}

int interrupted(int signal, const std::string& then) {
  const char* description = sigdescr_np(signal);
  throw Error(
      fmt::format("interrupted by signal {} ({}); {}", signal, description == nullptr ? "unknown" : description, then));
}

// Gives links their whole capacity back, whatever happens, unless somebody else has changed their rate since.
class Restore {
 public:
  Restore(const TestbedHandle& handle, const std::vector<LinkId>& links, Bandwidth rate)
      : handle_(handle), links_(links), rate_(rate) {}
  ~Restore() {
    try {
      now();
    } catch (const Error&) {
      // The testbed is gone, and its links with it.
    }
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

  void now() {
    for (const LinkId link : std::exchange(links_, {})) {
      const double now = handle_.rate(link).bytes_per_second;
      const bool is_ours = std::abs(now / rate_.bytes_per_second - 1) < 1e-3;  // tc rounds what it shows
      if (is_ours) handle_.reshape(link, handle_.record().blueprint.links[static_cast<std::size_t>(link)].capacity);
    }
  }
  void forget() { links_.clear(); }

 private:
  const TestbedHandle& handle_;
  std::vector<LinkId> links_;
  const Bandwidth rate_;
};

int reshape(const TestbedOptions& options, const TestbedHandle& handle, const std::vector<LinkId>& links,
            SignalPipe& signals) {
  Restore restore(handle, links, options.rate);
  for (const LinkId link : links) handle.reshape(link, options.rate);
  say(fmt::format("{} has {} now", options.link, format_bandwidth(options.rate)));
  if (!options.duration) {
    restore.forget();
    return ExitStatus::kDone;
  }
  const int signal = wait_until(signals, deadline_after(options.duration));
  restore.now();
  const std::string then = fmt::format("{} is given back", options.link);
  if (signal != 0) return interrupted(signal, then);
  say(then);
  return ExitStatus::kDone;
}

int send_traffic(const TestbedOptions& options, const TestbedHandle& handle, const std::vector<LinkId>& links,
                 SignalPipe& signals) {
  BackgroundTraffic traffic(handle);
  for (const LinkId link : links) {
    const LinkPlan& plan = handle.record().blueprint.links[static_cast<std::size_t>(link)];
    const Bandwidth taken{plan.capacity.bytes_per_second - options.rate.bytes_per_second};
    const Flow flow = traffic.start(link, taken);
    say(fmt::format("{} of UDP from {} to {} over {}", format_bandwidth(taken), flow.from, flow.to, plan.name));
  }
  const int signal = wait_until(signals, deadline_after(options.duration), &traffic);
  if (signal != 0 && options.duration) return interrupted(signal, "the traffic has ended");
  say("the traffic has ended");
  return ExitStatus::kDone;
}

}  // namespace

int contend(const TestbedOptions& options) {
  const TestbedHandle handle = TestbedHandle::find(options.name);
  const std::vector<LinkId> links = handle.links(options.link);
  for (const LinkId link : links) {
    const LinkPlan& plan = handle.record().blueprint.links[static_cast<std::size_t>(link)];
    if (options.rate <= plan.capacity) continue;
    throw InputError(fmt::format("RATE: expected at most {}, the capacity of {}, but found {}",
                                 format_bandwidth(plan.capacity), plan.name, format_bandwidth(options.rate)));
  }
  SignalPipe signals({SIGCHLD, SIGINT, SIGTERM, SIGHUP});
  if (const int signal = wait_until(signals, deadline_after(options.after))) {
    return interrupted(signal, "nothing was changed");
  }
  return options.traffic ? send_traffic(options, handle, links, signals) : reshape(options, handle, links, signals);
}

}  // namespace dssync::cli
