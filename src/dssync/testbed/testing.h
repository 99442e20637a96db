// For tests of emulated networks: nodes by name, processes that answer, TCP between hosts, and what TCP had to repeat.
#pragma once

#include <array>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netinet/in.h>

#include "dssync/base/error.h"
#include "dssync/testbed/testbed.h"

namespace dssync::testing {

inline constexpr int kPatienceSeconds = 60;
inline constexpr int kPort = 4000;  // nobody else is in a namespace of the testbed

// The host or switch of this name, which must be there.
NodeId node_called(const Topology& topology, const std::string& name);

// A pipe for plain values, and the forked process that writes one to it.
template <typename Value>
class Answer {
 public:
  explicit Answer(const std::function<Value()>& work) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw Error("no pipe");
    process_ = fork();
    if (process_ == 0) {
      alarm(kPatienceSeconds);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        const Value value = work();
        _exit(write(ends[1], &value, sizeof value) == sizeof value ? 0 : 1);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
      }
    }
    close(ends[1]);
    read_end_ = ends[0];
  }
  ~Answer() {
    close(read_end_);
    waitpid(process_, nullptr, 0);
  }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  Value get() {
    Value value{};
    if (read(read_end_, &value, sizeof value) != sizeof value) throw Error("a process gave no answer");
    return value;
  }

 private:
  pid_t process_ = -1;
  int read_end_ = -1;
};

class TcpSocket {
 public:
  explicit TcpSocket(int number) : number_(number) {}
  ~TcpSocket() { close(number_); }
  TcpSocket(const TcpSocket&) = delete;
  TcpSocket& operator=(const TcpSocket&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

sockaddr_in address_of(const std::string& host, int port = kPort);

// Takes one connection, reads so much, and answers with a byte; and the other side, with the seconds that it took.
void serve(const TcpSocket& listener, std::size_t bytes);
double send_to(const std::string& host, std::size_t bytes);

// Seconds that bytes take from one host, or for kNone from the fabric, to another.
double transfer(const Testbed& testbed, NodeId from, NodeId to, std::size_t bytes);

// The two ends of a connection on which both sides send so much: first one after the other, so that windows grow as
// they do in a long run, and then both at the same time. Each in a process of its own, which has entered its host.
// `port` is one that no other uses. The first waits until the second listens.
bool exchange_with(const std::string& host, int port, std::size_t bytes);
bool await_exchange(int port, std::size_t bytes);

// Segments that a host has sent again, and all that it has sent.
std::array<double, 2> repeated_segments(const Testbed& testbed, NodeId host);

}  // namespace dssync::testing
