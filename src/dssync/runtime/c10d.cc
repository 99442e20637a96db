#include "dssync/runtime/c10d.h"

#include <cstdlib>

#include "dssync/base/error.h"

#if TORCH_VERSION_MAJOR < 2
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif

namespace dssync {

#if TORCH_VERSION_MAJOR >= 2

GroupMaker gloo_groups(const std::string& /*address*/, std::chrono::milliseconds /*timeout*/) {
  throw Error("PyTorch 2 has no Gloo for C++: process groups have to come from WorldOptions::make_channel");
}

void cut(ChannelType& channel) { channel.abort(); }

#else

namespace {

// A Gloo group whose connections can be cut.
class GlooGroup : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;

  void cut() {
    for (const auto& context : contexts_) context->closeConnections();
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
    options->threads = 4;
    return c10::make_intrusive<GlooGroup>(store, index, size, options);
  };
}

void cut(ChannelType& channel) {
  if (auto* gloo = dynamic_cast<GlooGroup*>(&channel)) gloo->cut();
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
