#include "dssync/comm/c10d/c10d.h"

#include <cstdlib>

#include "dssync/base/error.h"

#if TORCH_VERSION_MAJOR < 2
#include <gloo/common/error.h>
#include <gloo/transport/unbound_buffer.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif

namespace dssync {

#if TORCH_VERSION_MAJOR >= 2

GroupMaker gloo_groups(const std::string& /*address*/, std::chrono::milliseconds /*timeout*/) {
  throw Error("PyTorch 2 has no Gloo for C++: process groups have to come from WorldOptions::make_channel");
}

void cut(ChannelType& channel) {
  if (auto* cuttable = dynamic_cast<Cuttable*>(&channel)) return cuttable->cut();
  if (channel.getBackendName() != "gloo") return channel.abort();
  // Gloo has no abort(), but a wait that runs out of time makes it fail whatever is under way in the group, and close
  // its connections. Nobody sends with this tag. A connection that is broken already throws before it waits: then the
  // next one does it.
  constexpr int kUnusedTag = 1 << 30;
  for (int peer = 0; peer < channel.getSize(); ++peer) {
    if (peer == channel.getRank()) continue;
    std::vector<at::Tensor> nothing = {at::empty({1}, at::kByte)};
    try {
      channel.recv(nothing, peer, kUnusedTag)->wait(std::chrono::milliseconds(1));
    } catch (const std::exception&) {
      continue;  // as expected
    }
  }
}

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

std::shared_ptr<::gloo::transport::Device> make_device(const std::string& address) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  return interface != nullptr && *interface != '\0' ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                                    : c10d::ProcessGroupGloo::createDeviceForHostname(address);
}

}  // namespace

GroupMaker gloo_groups(const std::string& address, std::chrono::milliseconds timeout) {
  return [device = make_device(address), timeout](const Store& store, int index, int size) -> Channel {
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    options->devices.push_back(device);
    options->threads = kChannelThreads;
    return c10::make_intrusive<GlooGroup>(store, index, size, options);
  };
}

void cut(ChannelType& channel) {
  if (auto* cuttable = dynamic_cast<Cuttable*>(&channel)) cuttable->cut();
}

#endif

void cut_all(const std::vector<Channel>& channels) noexcept {
  for (const Channel& channel : channels) {
    try {
      cut(*channel);
    } catch (const std::exception&) {
      continue;
    }
  }
}

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
