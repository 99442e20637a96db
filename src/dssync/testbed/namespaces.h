// Network and user namespaces of Linux, held by descriptors and never named. Thin over unshare(2) and setns(2), which
// move the calling thread alone. Not thread-safe.
#pragma once

#include <string>
#include <sys/types.h>
#include <utility>

namespace dssync {

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  int get() const { return number_; }

 private:
  int number_ = -1;
};

// Where something is to be done: in a network namespace, and in the user namespace that owns it, if that is another one
// than the caller's. -1: where the caller is.
struct Space {
  int user = -1;
  int network = -1;
};

// Opens "/proc/self/ns/net" or the like. Throws TestbedError.
Descriptor open_namespace(const std::string& path);

// The calling thread moves to a new, empty network namespace. Throws TestbedError that says what forbids it.
void make_network_namespace();

// The calling thread moves. Throws TestbedError.
void enter(const Space& space);

// The same for a child between fork and exec: no memory is allocated. False, with errno, where it failed.
bool try_enter(const Space& space);

// What is known to keep an unprivileged user from making user namespaces here, or nothing known: empty.
std::string user_namespace_obstacle();

}  // namespace dssync
