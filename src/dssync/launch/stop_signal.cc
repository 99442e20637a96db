#include "dssync/launch/stop_signal.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/launch/signal_pipe.h"

namespace dssync {
namespace {

int make_event() {
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) throw Error(fmt::format("cannot make an eventfd: {}", std::strerror(errno)));
  return event;
}

}  // namespace

class StopSignal::Watch {
 public:
  Watch(const std::vector<int>& signals, std::function<void(int)> handler)
      : pipe_(signals), end_(make_event()), handler_(std::move(handler)), thread_([this] { run(); }) {}

  ~Watch() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(end_, &one, sizeof one);
    thread_.join();
    close(end_);
  }

  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  bool is_ended() const {
    std::uint64_t count = 0;
    return read(end_, &count, sizeof count) == sizeof count;
  }

  void run() {
    while (!is_ended()) {
      pipe_.wait({}, end_);
      if (const std::optional<int> signal = pipe_.next()) {
        handler_(*signal);
        return;
      }
    }
  }

  SignalPipe pipe_;
  const int end_;
  const std::function<void(int)> handler_;
  std::thread thread_;
};

StopSignal::StopSignal(const std::vector<int>& signals, std::function<void(int)> handler)
    : watch_(std::make_unique<Watch>(signals, std::move(handler))) {}

StopSignal::~StopSignal() = default;

}  // namespace dssync
