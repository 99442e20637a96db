// Processes of this machine, from /proc: which ones are in the namespaces of a testbed, and how to end them.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace dssync {

// When the process started, in ticks since the machine did; 0 where there is no such process, or only its exit status.
std::uint64_t process_start(pid_t process);

// It has ended, or is about to: what it held may be gone.
bool is_ending(pid_t process);

// Which start of the machine this is.
std::string boot_id();

// The processes whose network namespace has all addresses of `mark` (Blueprint). Not the calling one. Numbers of
// namespaces are used again by the kernel, marks are not.
std::vector<pid_t> processes_marked(const std::string& mark);

// SIGTERM, and SIGKILL after `patience`. True where the process has ended; it need not be a child.
bool end_process(pid_t process, std::uint64_t start, std::chrono::milliseconds patience);

// SIGKILL for all of processes_marked, until none is left. Returns how many there were; throws TestbedError, naming
// those that stayed.
int end_marked(const std::string& mark);

}  // namespace dssync
