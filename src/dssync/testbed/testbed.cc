// Building: hosts' namespaces, then the fabric with all cables, then what is inside the hosts, then the record for
// others.
#include "dssync/testbed/testbed.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sstream>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/testbed/blueprint.h"
#include "dssync/testbed/capabilities.h"
#include "dssync/testbed/iproute.h"
#include "dssync/testbed/namespaces.h"
#include "dssync/testbed/processes.h"
#include "dssync/testbed/record.h"
#include "dssync/testbed/shaping.h"

namespace dssync {
namespace {

std::string random_mark() {
  std::random_device device;
  std::uniform_int_distribution<int> byte(1, 254);
  const auto address = [&] { return fmt::format("127.{}.{}.{}", byte(device), byte(device), byte(device)); };
  return address() + " " + address();
}

void check_machine(const Blueprint& plan) {
  std::vector<std::string> latencies;
  for (const LinkPlan& link : plan.links) {
    if (link.latency.count() > 0) latencies.push_back(link.name);
  }
  const std::vector<std::string> missing = missing_for_testbed(latencies);
  if (!missing.empty()) {
    throw TestbedError(fmt::format("this machine cannot emulate the network: {}", fmt::join(missing, "; ")));
  }
}

// /proc/sys/net is that of the calling thread's network namespace. What this kernel does not have is left out.
void set(const std::string& file, const std::string& value) {
  const Descriptor out(open(("/proc/sys/net/" + file).c_str(), O_WRONLY | O_CLOEXEC));
  if (out.get() < 0 && errno == ENOENT) return;
  if (out.get() < 0 || write(out.get(), value.data(), value.size()) < 0) {
    throw TestbedError(fmt::format("cannot set /proc/sys/net/{} to {}: {}", file, value, std::strerror(errno)));
  }
}

// A namespace without IPv6, whose own messages would be counted. The calling thread is in it then.
Descriptor make_space() {
  make_network_namespace();
  set("ipv6/conf/all/disable_ipv6", "1");
  set("ipv6/conf/default/disable_ipv6", "1");
  return open_namespace("/proc/self/ns/net");
}

}  // namespace

class Testbed::Network {
 public:
  Network(const Topology& topology, const std::string& name, const std::string& source)
      : registry_(Registry::of_user()) {
    if (!name.empty()) check_testbed_name(name);
    record_.name = name;
    record_.source = source;
    record_.blueprint = blueprint_of(topology, random_mark());
    check_machine(record_.blueprint);
    ensure_network_privileges();
    home_ = open_namespace("/proc/self/ns/net");
    try {
      make_spaces();
      configure();
      publish();
    } catch (...) {
      go_home();
      throw;
    }
  }

  ~Network() {
    if (getpid() != record_.builder) return;
    registry_.remove(record_.name);
    go_home();
  }

  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const TestbedRecord& record() const { return record_; }

  Space space_of(NodeId host) const {
    if (host == kNone) return {.network = fabric_.get()};
    const HostPlan& plan = host_plan(record_.blueprint, host);
    return {.network = hosts_[static_cast<std::size_t>(&plan - record_.blueprint.hosts.data())].get()};
  }

 private:
  void make_spaces() {
    for (const HostPlan& host : record_.blueprint.hosts) {
      hosts_.push_back(make_space());
      for (const LinkPlan& link : record_.blueprint.links) {
        if (link.host != host.node) continue;
        for (const auto& [file, value] : tcp_settings(link.capacity)) set(file, value);
      }
    }
    fabric_ = make_space();
    for (const auto& [file, value] : tcp_settings(Bandwidth())) set(file, value);
  }

  void configure() {
    const Blueprint& plan = record_.blueprint;
    const auto file_of = [&](NodeId host) { return fmt::format("/proc/{}/fd/{}", getpid(), space_of(host).network); };
    run_batch("ip", fabric_ip_batch(plan, file_of));
    run_batch("bridge", fabric_bridge_batch(plan));
    run_batch("tc", tc_batch(plan, kNone));
    for (const HostPlan& host : plan.hosts) {
      const Space space = space_of(host.node);
      run_batch("ip", host_ip_batch(plan, host.node), space);
      run_batch("tc", tc_batch(plan, host.node), space);
    }
  }

  void publish() {
    record_.boot = boot_id();
    record_.builder = getpid();
    record_.builder_start = process_start(getpid());
    for (const Descriptor& host : hosts_) record_.descriptors.push_back(host.get());
    registry_.add(record_);
  }

  void go_home() {
    // Without root's rights there is no way back.
    static_cast<void>(try_enter({.network = home_.get()}));
  }

  Registry registry_;
  TestbedRecord record_;
  Descriptor home_;
  Descriptor fabric_;
  std::vector<Descriptor> hosts_;  // in the order of the blueprint's
};

Testbed::Testbed(const Topology& topology, const std::string& name, const std::string& source)
    : network_(std::make_unique<Network>(topology, name, source)) {}

Testbed::~Testbed() = default;

const std::string& Testbed::name() const { return network_->record().name; }

void Testbed::enter(NodeId host) const { dssync::enter(network_->space_of(host)); }

std::string Testbed::address_of(NodeId host) const { return host_plan(network_->record().blueprint, host).address; }

std::string Testbed::fabric_address() const { return network_->record().blueprint.fabric_address; }

void Testbed::reshape(LinkId link, Bandwidth rate) const {
  const LinkPlan& plan = network_->record().blueprint.links.at(static_cast<std::size_t>(link));
  run_batch("tc", reshape_batch(plan, rate), network_->space_of(plan.host));
}

std::vector<std::uint64_t> Testbed::bytes() const { return bytes_carried(network_->record()); }

}  // namespace dssync
