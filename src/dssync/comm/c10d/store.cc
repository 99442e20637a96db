#include "dssync/comm/c10d/store.h"

#include <vector>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "dssync/base/error.h"

namespace dssync {
namespace {

c10::intrusive_ptr<c10d::TCPStore> make_store(const std::string& host, std::uint16_t port,
                                              std::chrono::milliseconds timeout, bool serve) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = serve;
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

}  // namespace

ServedStore serve_store(std::uint16_t port, std::chrono::milliseconds timeout) {
  try {
    const auto store = make_store("127.0.0.1", port, timeout, true);
    return {store, store->getPort()};
  } catch (const std::exception& error) {
    const std::string cause = error.what();
    const bool is_taken = cause.find("EADDRINUSE") != std::string::npos || cause.find("in use") != std::string::npos;
    throw Error(fmt::format("cannot serve the workers' store on port {}: {}", port,
                            is_taken ? "another process uses it" : plain_message(cause)));
  }
}

Store reach_store(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout) {
  try {
    const Store store = make_store(host, port, timeout, false);
    // Whatever else listens there does not answer, and most of the store's calls would wait for ever.
    constexpr const char* kHello = "dssync/hello";
    put_text(*store, kHello, "hello");
    store->wait({kHello}, timeout);
    return store;
  } catch (const std::exception& error) {
    throw Error(fmt::format("cannot reach the store at {}:{} within {} s: {}", host, port,
                            static_cast<double>(timeout.count()) / 1000, plain_message(error.what())));
  }
}

void put_text(c10d::Store& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::string get_text(c10d::Store& store, const std::string& key) {
  const std::vector<std::uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

}  // namespace dssync
