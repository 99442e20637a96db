#include "dssync/testbed/testing.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include <arpa/inet.h>

namespace dssync::testing {
namespace {

void receive(const TcpSocket& peer, std::size_t bytes) {
  std::vector<char> chunk(65536);
  while (bytes > 0) {
    const ssize_t size = recv(peer.get(), chunk.data(), std::min(chunk.size(), bytes), 0);
    if (size <= 0) throw Error("the connection ended early");
    bytes -= static_cast<std::size_t>(size);
  }
}

void send_all(const TcpSocket& peer, std::size_t bytes) {
  const std::vector<char> data(bytes);
  for (std::size_t sent = 0; sent < bytes;) {
    const ssize_t size = send(peer.get(), data.data() + sent, bytes - sent, MSG_NOSIGNAL);
    if (size <= 0) throw Error("cannot send");
    sent += static_cast<std::size_t>(size);
  }
}

bool send_both_ways(const TcpSocket& peer, bool is_first, std::size_t bytes) {
  if (is_first) send_all(peer, bytes);
  receive(peer, bytes);
  if (!is_first) send_all(peer, bytes);
  std::thread sender([&] { send_all(peer, bytes); });
  receive(peer, bytes);
  sender.join();
  return true;
}

}  // namespace

NodeId node_called(const Topology& topology, const std::string& name) {
  for (NodeId id = 0; id < static_cast<NodeId>(topology.nodes().size()); ++id) {
    if (topology.node(id).name == name) return id;
  }
  throw Error("no node " + name);
}

sockaddr_in address_of(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

void serve(const TcpSocket& listener, std::size_t bytes) {
  const TcpSocket peer(accept(listener.get(), nullptr, nullptr));
  receive(peer, bytes);
  if (send(peer.get(), "x", 1, MSG_NOSIGNAL) != 1) throw Error("cannot answer");
}

double send_to(const std::string& host, std::size_t bytes) {
  const TcpSocket peer(socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = address_of(host);
  const auto start = std::chrono::steady_clock::now();
  if (connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw Error("no connection");
  send_all(peer, bytes);
  char answer = 0;
  if (recv(peer.get(), &answer, 1, 0) != 1) throw Error("no answer");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double transfer(const Testbed& testbed, NodeId from, NodeId to, std::size_t bytes) {
  std::array<int, 2> ready{};
  if (pipe(ready.data()) != 0) throw Error("no pipe");
  Answer<bool> receiver([&] {
    testbed.enter(to);
    const TcpSocket listener(socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in address = address_of("0.0.0.0");
    const int yes = 1;
    setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) throw Error("no port");
    if (listen(listener.get(), 1) != 0 || write(ready[1], "r", 1) != 1) throw Error("cannot listen");
    serve(listener, bytes);
    return true;
  });
  close(ready[1]);
  char byte = 0;
  const bool is_listening = read(ready[0], &byte, 1) == 1;
  close(ready[0]);
  if (!is_listening) throw Error("nobody listens");
  Answer<double> sender([&] {
    if (from != kNone) testbed.enter(from);
    return send_to(testbed.address_of(to), bytes);
  });
  const double seconds = sender.get();
  receiver.get();
  return seconds;
}

bool exchange_with(const std::string& host, int port, std::size_t bytes) {
  const TcpSocket peer(socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = address_of(host, port);
  while (connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until the other side listens
  }
  return send_both_ways(peer, true, bytes);
}

bool await_exchange(int port, std::size_t bytes) {
  const TcpSocket listener(socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = address_of("0.0.0.0", port);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) throw Error("no port");
  if (listen(listener.get(), 1) != 0) throw Error("cannot listen");
  const TcpSocket peer(accept(listener.get(), nullptr, nullptr));
  return send_both_ways(peer, false, bytes);
}

std::array<double, 2> repeated_segments(const Testbed& testbed, NodeId host) {
  return Answer<std::array<double, 2>>([&] {
           testbed.enter(host);
           std::ifstream table("/proc/self/net/snmp");
           std::vector<std::string> names;
           for (std::string line; std::getline(table, line);) {
             std::istringstream stream(line);
             const std::vector<std::string> words(std::istream_iterator<std::string>(stream), {});
             if (words.front() != "Tcp:") continue;
             if (names.empty()) {
               names = words;
               continue;
             }
             const auto value = [&](const char* name) {
               const auto found = std::find(names.begin(), names.end(), name);
               return std::stod(words.at(static_cast<std::size_t>(found - names.begin())));
             };
             return std::array{value("RetransSegs"), value("OutSegs")};
           }
           throw Error("no counters of TCP");
         })
      .get();
}

}  // namespace dssync::testing
