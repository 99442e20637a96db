// Real networks: that every host reaches every other, that links are as slow and count as they should, and that nothing
// is ever left. No test expects a link to be fast: that is for the bench.
#include "dssync/testbed/testbed.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "dssync/base/error.h"
#include "dssync/base/temporary_folder.h"
#include "dssync/testbed/background_traffic.h"
#include "dssync/testbed/capabilities.h"
#include "dssync/testbed/handle.h"
#include "dssync/testbed/processes.h"
#include "dssync/testbed/shaping.h"
#include "dssync/testbed/testing.h"
#include "dssync/topology/read.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

using testing::Answer;
using testing::node_called;
using testing::TcpSocket;
using testing::transfer;

constexpr double kMegabyte = 1e6;

std::size_t link_called(const Topology& topology, const std::string& name) {
  for (std::size_t id = 0; id < topology.links().size(); ++id) {
    if (topology.links()[id].name == name) return id;
  }
  throw Error("no link " + name);
}

std::vector<NodeId> hosts_of(const Topology& topology) {
  std::vector<NodeId> hosts;
  for (int position = 0; position < topology.workers(); ++position) hosts.push_back(topology.host_at(position));
  return hosts;
}

// NICs of 80 Mbit/s and uplinks of 40: 10 and 5 MB/s.
Topology two_racks() {
  return read_yaml_topology(R"(
defaults: {nic: 80Mbps}
switches:
  - {name: core}
  - {name: rack-a, parent: core, uplink: 40Mbps}
  - {name: rack-b, parent: core, uplink: 40Mbps}
hosts:
  - {name: "a[0-1]", switch: rack-a}
  - {name: "b[0-1]", switch: rack-b}
)",
                            "two-racks.yaml")
      .topology;
}

ino_t network_of_this_process() {
  struct stat found {};
  stat("/proc/self/ns/net", &found);
  return found.st_ino;
}

std::size_t entries_of(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::size_t interfaces() {
  std::ifstream table("/proc/self/net/dev");
  std::size_t lines = 0;
  for (std::string line; std::getline(table, line);) ++lines;
  return lines;
}

bool has_cable(pid_t process) {
  std::ifstream table("/proc/" + std::to_string(process) + "/net/dev");
  for (std::string line; std::getline(table, line);) {
    if (line.find("eth0:") != std::string::npos) return true;
  }
  return false;
}

// Each test has a folder of its own for the records, and runs in a process of its own: one that builds a testbed
// without being root cannot go back.
class TestbedTest : public ::testing::Test {
 protected:
  TestbedTest() { setenv("DSSYNC_STATE", folder_.path().c_str(), 1); }
  ~TestbedTest() override {
    const Registry registry(folder_.path());
    for (const TestbedRecord& record : registry.list()) end_testbed(record, registry);
  }

  void SetUp() override {
    const std::vector<std::string> missing = missing_for_testbed({});
    if (!missing.empty()) GTEST_SKIP() << missing.front();
  }

  static void apart(const std::function<void()>& body) {
    Answer<bool> outcome([&] {
      body();
      std::fflush(nullptr);
      return !HasFailure();
    });
    EXPECT_TRUE(outcome.get());
  }

  const testing::TemporaryFolder folder_;
};

// Both ends of all connections send at once, over links of several speeds: no data may be taken for old because an
// acknowledgement has overtaken it.
TEST_F(TestbedTest, TwoWayTrafficLosesNothing) {
  apart([] {
    const Topology topology = two_racks();
    const Testbed testbed(topology);
    std::vector<std::unique_ptr<Answer<bool>>> ends;
    int port = testing::kPort;
    for (const NodeId from : hosts_of(topology)) {
      for (const NodeId to : hosts_of(topology)) {
        if (from >= to) continue;
        ++port;
        ends.push_back(std::make_unique<Answer<bool>>([&testbed, to, port] {
          testbed.enter(to);
          return testing::await_exchange(port, 2 * static_cast<std::size_t>(kMegabyte));
        }));
        ends.push_back(std::make_unique<Answer<bool>>([&testbed, from, to, port] {
          testbed.enter(from);
          return testing::exchange_with(testbed.address_of(to), port, 2 * static_cast<std::size_t>(kMegabyte));
        }));
      }
    }
    for (const auto& end : ends) EXPECT_TRUE(end->get());
    for (const NodeId host : hosts_of(topology)) {
      const auto [repeated, sent] = testing::repeated_segments(testbed, host);
      EXPECT_GT(sent, 3 * 2e6 / kMtu);
      EXPECT_LE(repeated, sent / 1000) << topology.node(host).name;
    }
  });
}

TEST_F(TestbedTest, EveryHostReachesEveryOther) {
  apart([] {
    const Topology topology = testing::three_levels(2, 2, 1, 1, 1e7, 1e7, 1e7);
    const Testbed testbed(topology);
    for (const NodeId from : hosts_of(topology)) {
      for (const NodeId to : hosts_of(topology)) {
        if (from == to) continue;
        EXPECT_GT(transfer(testbed, from, to, 1), 0);
      }
      EXPECT_GT(transfer(testbed, kNone, from, 1), 0);
    }
  });
}

TEST_F(TestbedTest, TheBuilderIsReachedFromEveryHost) {
  apart([] {
    const Topology topology = two_racks();
    const Testbed testbed(topology);
    const TcpSocket listener(socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in address = testing::address_of(testbed.fabric_address());
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener.get(), 1), 0);
    for (const NodeId host : hosts_of(topology)) {
      Answer<double> client([&] {
        testbed.enter(host);
        return testing::send_to(testbed.fabric_address(), 1000);
      });
      testing::serve(listener, 1000);
      EXPECT_GT(client.get(), 0);
    }
  });
}

TEST_F(TestbedTest, LinksAreAsSlowAsTheTopologySays) {
  apart([] {
    const Topology topology = two_racks();
    const Testbed testbed(topology);
    const NodeId a0 = node_called(topology, "a0");
    // A megabyte takes 0.1 s over a NIC and 0.2 s over an uplink; a bucket lets the first kilobytes through at once.
    EXPECT_GT(transfer(testbed, a0, node_called(topology, "a1"), 1'000'000), 0.09);
    EXPECT_GT(transfer(testbed, a0, node_called(topology, "b0"), 1'000'000), 0.18);
    EXPECT_LT(transfer(testbed, a0, node_called(topology, "b0"), 1'000'000), 10);
  });
}

TEST_F(TestbedTest, EveryLinkCountsWhatItCarries) {
  apart([] {
    const Topology topology = two_racks();
    const Testbed testbed(topology);
    EXPECT_THAT(testbed.bytes(), Each(0U));
    transfer(testbed, node_called(topology, "a0"), node_called(topology, "b1"), 1'000'000);
    const std::vector<std::uint64_t> bytes = testbed.bytes();
    for (const char* name : {"a0 out", "rack-a up", "rack-b down", "b1 in"}) {
      const auto carried = static_cast<double>(bytes[link_called(topology, name)]);
      EXPECT_GT(carried, kMegabyte) << name;
      EXPECT_LT(carried, 1.1 * kMegabyte) << name;
    }
    for (const char* name : {"b1 out", "rack-b up", "rack-a down", "a0 in"}) {  // acknowledgements
      EXPECT_GT(bytes[link_called(topology, name)], 0U) << name;
      EXPECT_LT(bytes[link_called(topology, name)], 50'000U) << name;
    }
    for (const char* name : {"a1 out", "a1 in", "b0 out", "b0 in"}) {
      EXPECT_EQ(bytes[link_called(topology, name)], 0U) << name;
    }
  });
}

TEST_F(TestbedTest, AWorkerInAHostSeesTheSameCounters) {
  apart([] {
    const Topology topology = two_racks();
    const Testbed testbed(topology);
    const NodeId a0 = node_called(topology, "a0");
    transfer(testbed, a0, node_called(topology, "a1"), 100'000);
    const std::size_t link = link_called(topology, "a0 out");
    Answer<std::uint64_t> worker([&] {
      testbed.enter(a0);
      return testbed.bytes()[link];
    });
    EXPECT_GE(worker.get(), 100'000U);
  });
}

TEST_F(TestbedTest, ReshapingTakesEffectAtOnce) {
  apart([] {
    const Topology topology = two_racks();
    const Testbed testbed(topology);
    const NodeId a0 = node_called(topology, "a0");
    const NodeId a1 = node_called(topology, "a1");
    for (const char* name : {"a0 out", "a1 in"}) {  // one is shaped in a host, one in the fabric
      const auto link = static_cast<LinkId>(link_called(topology, name));
      testbed.reshape(link, {1e6});
      EXPECT_GT(transfer(testbed, a0, a1, 500'000), 0.4) << name;
      testbed.reshape(link, topology.link(link).capacity);
      EXPECT_LT(transfer(testbed, a0, a1, 500'000), 0.4) << name;
    }
    EXPECT_THROW(testbed.reshape(0, {0.5}), InputError);
  });
}

TEST_F(TestbedTest, TwoExistAtOnce) {
  const auto build_and_use = [] {
    const Topology topology = two_racks();
    const Testbed testbed(topology);
    transfer(testbed, node_called(topology, "a0"), node_called(topology, "b0"), 100'000);
    return static_cast<double>(testbed.bytes()[link_called(topology, "rack-a up")]);
  };
  Answer<double> first(build_and_use);
  Answer<double> second(build_and_use);
  EXPECT_LT(first.get(), 150e3);  // each counts its own alone
  EXPECT_LT(second.get(), 150e3);
}

TEST_F(TestbedTest, OthersFindItEnterItAndChangeIt) {
  apart([] {
    const Topology topology = two_racks();
    const Testbed testbed(topology, "lab", "two-racks.yaml");
    Answer<bool> other([] {
      const TestbedHandle handle = TestbedHandle::find("");
      EXPECT_EQ(handle.record().name, "lab");
      EXPECT_THAT(handle.links("rack-a"), SizeIs(2));
      const LinkId link = handle.links("a0 out").front();
      handle.reshape(link, {1e6});
      EXPECT_NEAR(handle.rate(link).bytes_per_second, 1e6, 1);
      const std::vector<LinkState> links = handle.traffic();
      EXPECT_NEAR(links[static_cast<std::size_t>(link)].rate.bytes_per_second, 1e6, 1);
      EXPECT_NEAR(links[static_cast<std::size_t>(link)].capacity.bytes_per_second, 10e6, 1);
      EXPECT_THROW(handle.links("rack-c"), InputError);
      EXPECT_THROW(handle.host("rack-a"), InputError);
      const ino_t before = network_of_this_process();
      handle.enter(handle.host("b1"));
      EXPECT_NE(network_of_this_process(), before);
      return !HasFailure();
    });
    EXPECT_TRUE(other.get());
    EXPECT_THROW(Testbed(topology, "lab"), InputError);
    EXPECT_THROW(TestbedHandle::find("lap"), InputError);
  });
}

TEST_F(TestbedTest, BackgroundTrafficTakesItsShare) {
  apart([] {
    const Topology topology = two_racks();
    const Testbed testbed(topology);
    const TestbedHandle handle = TestbedHandle::find(testbed.name());
    const std::size_t link = link_called(topology, "rack-a up");
    BackgroundTraffic traffic(handle);
    const Flow flow = traffic.start(static_cast<LinkId>(link), {2e6});
    EXPECT_TRUE(flow.from.starts_with("a")) << flow.from;
    EXPECT_TRUE(flow.to.starts_with("b")) << flow.to;
    const auto start = std::chrono::steady_clock::now();
    while (testbed.bytes()[link] < 200'000U) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_GT(seconds, 0.05);  // 0.1 at 2 MB/s
    EXPECT_FALSE(traffic.has_ended());
    EXPECT_THROW(traffic.start(static_cast<LinkId>(link), {11e6}), InputError);  // more than any NIC
  });
}

TEST_F(TestbedTest, NoBackgroundTrafficAtARateOfZero) {
  apart([] {
    const Topology topology = two_racks();
    const Testbed testbed(topology);
    const TestbedHandle handle = TestbedHandle::find(testbed.name());
    BackgroundTraffic traffic(handle);
    const Flow flow = traffic.start(static_cast<LinkId>(link_called(topology, "rack-a up")), {0});
    EXPECT_TRUE(flow.from.starts_with("a")) << flow.from;
    siginfo_t child{};
    EXPECT_EQ(waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT), -1);  // there are none
    EXPECT_FALSE(traffic.has_ended());
  });
}

TEST_F(TestbedTest, AKilledBuilderLeavesNothingThatCannotBeRemoved) {
  const std::size_t interfaces_before = interfaces();
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t builder = fork();
  if (builder == 0) {
    const Topology topology = two_racks();
    const Testbed testbed(topology, "killed");
    if (fork() == 0) {  // a worker that does not end with its builder
      testbed.enter(node_called(topology, "a0"));
      const pid_t self = getpid();
      if (write(ready[1], &self, sizeof self) != sizeof self) _exit(1);
      close_range(3, ~0U, 0);  // with the namespaces that it has from the builder, as after exec
      while (true) pause();
    }
    while (true) pause();
  }
  pid_t worker = 0;
  ASSERT_EQ(read(ready[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  close(ready[0]);
  close(ready[1]);
  kill(builder, SIGKILL);
  waitpid(builder, nullptr, 0);
  // The kernel takes the fabric down when it likes, and with it the worker's cable.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(testing::kPatienceSeconds);
  while (has_cable(worker) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(has_cable(worker));
  const Registry registry(folder_.path());
  const std::vector<TestbedRecord> left = registry.list();
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_FALSE(left[0].builder_is_alive());
  EXPECT_THROW(TestbedHandle::find("killed"), InputError);
  const EndedTestbed ended = end_testbed(left[0], registry);
  EXPECT_TRUE(ended.was_left_over);
  EXPECT_EQ(ended.processes, 1);
  EXPECT_THAT(processes_marked(left[0].blueprint.mark), IsEmpty());
  EXPECT_THAT(registry.list(), IsEmpty());
  EXPECT_EQ(interfaces(), interfaces_before);
}

TEST_F(TestbedTest, FiftyTestbedsInARowLeaveNothing) {
  apart([&] {
    const Topology topology = two_racks();
    { const Testbed first(topology); }  // as an unprivileged user it moves to a user namespace, once
    const std::size_t descriptors = entries_of("/proc/self/fd");
    const std::size_t shown = interfaces();
    for (int i = 0; i < 50; ++i) {
      const Testbed testbed(topology);
      EXPECT_EQ(testbed.name(), "testbed-1");
    }
    EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
    EXPECT_EQ(entries_of(folder_.path()), 0U);
    EXPECT_THAT(interfaces(), Le(shown));
  });
}

TEST_F(TestbedTest, AFailureHalfWayLeavesNothing) {
  // A `tc` that passes the trial, which uses `lo`, and then refuses.
  const std::filesystem::path tool = folder_ / "tc";
  std::ofstream(tool) << "#!/bin/sh\ngrep -q 'dev lo' && exit 0\necho 'Error: made up.' >&2\n"
                         "echo 'Command failed -:2' >&2\nexit 1\n";
  ASSERT_EQ(chmod(tool.c_str(), 0755), 0);
  setenv("PATH", (folder_.path().string() + ":" + std::getenv("PATH")).c_str(), 1);
  apart([&] {
    const std::size_t descriptors = entries_of("/proc/self/fd");
    const ino_t home = network_of_this_process();
    const bool is_root = geteuid() == 0;
    try {
      const Testbed testbed(two_racks(), "broken");
      ADD_FAILURE() << "built";
    } catch (const TestbedError& error) {
      EXPECT_THAT(error.what(), HasSubstr("Error: made up. (tc class add dev u1 parent 1: classid 1:1 htb rate "));
    }
    EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
    EXPECT_EQ(network_of_this_process() == home, is_root);
    EXPECT_EQ(entries_of(folder_.path()), 1U);  // the tool
  });
}

TEST_F(TestbedTest, LatencyNeedsAKernelThatHasIt) {
  if (missing_for_testbed({"rack-a up"}).empty()) GTEST_SKIP() << "this kernel has sch_netem";
  const Topology topology =
      read_yaml_topology("hosts:\n  - {name: \"h[0-1]\", nic: 1Gbps, latency: 1ms}\n", "x").topology;
  try {
    const Testbed testbed(topology);
    FAIL() << "built";
  } catch (const TestbedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sch_netem"));
    EXPECT_THAT(error.what(), HasSubstr("h0 out"));
    EXPECT_THAT(error.what(), HasSubstr("'latency:'"));
    EXPECT_THAT(error.what(), HasSubstr("--ignore-latency"));
  }
}

}  // namespace
}  // namespace dssync
