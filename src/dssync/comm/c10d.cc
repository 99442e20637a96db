#include "dssync/comm/c10d.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "dssync/base/error.h"

#if TORCH_VERSION_MAJOR < 2
#include <gloo/common/error.h>
#include <gloo/transport/unbound_buffer.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif

namespace dssync {

#if TORCH_VERSION_MAJOR >= 2

GroupMaker gloo_groups(const std::string& /*address*/, std::chrono::milliseconds /*timeout*/,
                       std::function<std::string()> /*losses*/) {
  throw Error("PyTorch 2 has no Gloo for C++: process groups have to come from WorldOptions::make_channel");
}

void cut(ChannelType& channel) { channel.abort(); }

#else

namespace {

// A Gloo group whose connections can be cut.
class GlooGroup : public c10d::ProcessGroupGloo, public Cuttable {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;

  // A wait that runs out of time makes Gloo fail whatever is under way in the group, and close its connections. (Where
  // they are merely closed, sends wait for their timeout.)
  void cut() override {
    for (const auto& context : contexts_) {
      char nothing = 0;
      try {
        context->createUnboundBuffer(&nothing, sizeof nothing)->waitRecv(std::chrono::milliseconds(1));
      } catch (const ::gloo::IoException&) {
        continue;  // as expected
      }
    }
  }
};

// The store in which the members of a group meet. Asks again and again instead of blocking in it, so that a lost member
// is heard of, and others can use the connection meanwhile.
class MeetingStore : public c10d::Store {
 public:
  MeetingStore(dssync::Store store, std::chrono::milliseconds timeout, std::function<std::string()> losses)
      : c10d::Store(timeout), store_(std::move(store)), losses_(std::move(losses)) {}

  void set(const std::string& key, const std::vector<std::uint8_t>& value) override { store_->set(key, value); }
  std::int64_t add(const std::string& key, std::int64_t value) override { return store_->add(key, value); }
  bool deleteKey(const std::string& key) override { return store_->deleteKey(key); }
  bool check(const std::vector<std::string>& keys) override { return store_->check(keys); }
  std::int64_t getNumKeys() override { return store_->getNumKeys(); }

  std::vector<std::uint8_t> get(const std::string& key) override {
    wait({key});
    return store_->get(key);
  }

  void wait(const std::vector<std::string>& keys) override { wait(keys, getTimeout()); }

  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    using std::chrono::milliseconds;
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (milliseconds pause{1}; !store_->check(keys); pause = std::min(2 * pause, milliseconds(50))) {
      const std::string lost = losses_();
      if (!lost.empty()) throw std::runtime_error(lost);
      if (std::chrono::steady_clock::now() >= deadline) throw std::runtime_error("timed out waiting for its members");
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  dssync::Store store_;
  std::function<std::string()> losses_;
};

std::shared_ptr<::gloo::transport::Device> make_device(const std::string& address) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  return interface != nullptr && *interface != '\0' ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                                    : c10d::ProcessGroupGloo::createDeviceForHostname(address);
}

}  // namespace

GroupMaker gloo_groups(const std::string& address, std::chrono::milliseconds timeout,
                       std::function<std::string()> losses) {
  return [device = make_device(address), timeout, losses = std::move(losses)](const Store& store, int index,
                                                                              int size) -> Channel {
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    options->devices.push_back(device);
    options->threads = kChannelThreads;
    const auto meeting = c10::make_intrusive<MeetingStore>(store, timeout, losses);
    return c10::make_intrusive<GlooGroup>(meeting, index, size, options);
  };
}

void cut(ChannelType& channel) {
  if (auto* cuttable = dynamic_cast<Cuttable*>(&channel)) cuttable->cut();
}

#endif

std::string plain_message(const std::string& what) {
  std::string line = what.substr(0, what.find('\n'));
  if (line.starts_with("[") && line.find("] ") != std::string::npos) line = line.substr(line.find("] ") + 2);
  return line;
}

bool can_sum(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
      return true;
    case at::kBFloat16:
      return TORCH_VERSION_MAJOR >= 2;
    default:
      return false;
  }
}

}  // namespace dssync
