// Slurm's topology.conf: what is read, assumed and refused.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/topology/read.h"

namespace dssync {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ReadResult read_slurm(const std::string& text, const Assumptions& assumptions = {}) {
  return read_slurm_topology(text, "topology.conf", assumptions);
}

std::string slurm_problem(const std::string& text) {
  try {
    read_slurm(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

double uplink_of(const Topology& topology, const std::string& name) {
  for (const Node& node : topology.nodes()) {
    if (node.name == name) return topology.link(node.up).capacity.bytes_per_second;
  }
  ADD_FAILURE() << "no node " << name;
  return 0;
}

TEST(SlurmTest, ReadsSwitchesNodesAndRanges) {
  const Topology topology = read_slurm(
                                "# a comment\n"
                                "SwitchName=s0 Nodes=dev[00-02,7],login\n"
                                "switchname=s1 NODES=gpu[1-2]  # the second rack\n"
                                "SwitchName=top Switches=s[0-1]\n")
                                .topology;
  EXPECT_EQ(topology.node(topology.root()).name, "top");
  std::vector<std::string> names;
  for (Rank rank = 0; rank < topology.workers(); ++rank) names.push_back(topology.worker_name(rank));
  EXPECT_THAT(names, ElementsAre("dev00", "dev01", "dev02", "dev7", "login", "gpu1", "gpu2"));
  EXPECT_EQ(topology.node(1).name, "s0");
  EXPECT_EQ(topology.node(1).count, 5);
}

TEST(SlurmTest, LinesMayBeContinuedAndEndInCrlf) {
  const Topology topology =
      read_slurm("SwitchName=s0 \\\r\n  Nodes=a,b\\\n\nSwitchName=top \\\n Switches=s0\r\n").topology;
  EXPECT_EQ(topology.workers(), 2);
  EXPECT_THAT(slurm_problem("SwitchName=s0 \\\n Nodes=a\nSwitchName=s1 Nodes=a"), StartsWith("topology.conf:3: "));
}

TEST(SlurmTest, ValuesMayBeQuoted) { EXPECT_EQ(read_slurm("SwitchName=\"s0\" Nodes=\"a,b\"").topology.workers(), 2); }

TEST(SlurmTest, LinkSpeedIsTheCableUpInMbitUnlessAUnitIsWritten) {
  const ReadResult result = read_slurm(
      "SwitchName=s0 Nodes=a LinkSpeed=1000\nSwitchName=s1 Nodes=b LinkSpeed=40Gbps\nSwitchName=top Switches=s0,s1 "
      "LinkSpeed=9");
  EXPECT_DOUBLE_EQ(uplink_of(result.topology, "s0"), 125e6);
  EXPECT_DOUBLE_EQ(uplink_of(result.topology, "s1"), 5e9);
  EXPECT_THAT(result.notes,
              ElementsAre(AllOf(HasSubstr("NIC"), HasSubstr("10 Gbit/s"), HasSubstr("2 hosts")), HasSubstr("Mbit/s")));
}

TEST(SlurmTest, UplinksWithoutASpeedAreAsFastAsAllBelow) {
  const ReadResult result = read_slurm(
      "SwitchName=top Switches=mid,s2\nSwitchName=mid Switches=s[0-1] Nodes=m\n"
      "SwitchName=s0 Nodes=a[0-3]\nSwitchName=s1 Nodes=b[0-1] LinkSpeed=8000\nSwitchName=s2 Nodes=c");
  EXPECT_DOUBLE_EQ(uplink_of(result.topology, "a0"), 1.25e9);
  EXPECT_DOUBLE_EQ(uplink_of(result.topology, "s0"), 4 * 1.25e9);
  EXPECT_DOUBLE_EQ(uplink_of(result.topology, "s1"), 1e9);
  EXPECT_DOUBLE_EQ(uplink_of(result.topology, "mid"), 4 * 1.25e9 + 1e9 + 1.25e9);
  ASSERT_EQ(result.notes.size(), 3U);
  EXPECT_THAT(result.notes[2], AllOf(HasSubstr("3 of 4 uplinks"), HasSubstr("links below it together")));
}

TEST(SlurmTest, AssumptionsComeBeforeTheUsualRates) {
  Assumptions assumptions;
  assumptions.nic = Bandwidth{1e6};
  assumptions.uplink = Bandwidth{2e6};
  const ReadResult result = read_slurm(
      "SwitchName=s0 Nodes=a\nSwitchName=s1 Nodes=b LinkSpeed=8Mbps\nSwitchName=t Switches=s[0-1]", assumptions);
  EXPECT_DOUBLE_EQ(uplink_of(result.topology, "a"), 1e6);
  EXPECT_DOUBLE_EQ(uplink_of(result.topology, "s0"), 2e6);
  EXPECT_DOUBLE_EQ(uplink_of(result.topology, "s1"), 1e6);
  EXPECT_THAT(result.notes,
              ElementsAre(HasSubstr("8 Mbit/s"), AllOf(HasSubstr("1 of 2 uplinks"), HasSubstr("16 Mbit/s"))));
}

TEST(SlurmTest, RefusesUnknownKeysAndGuesses) {
  EXPECT_THAT(slurm_problem("SwitchName=s0 Nodes=a\nSwitchName=s1 Node=b"),
              AllOf(StartsWith("topology.conf:2: "), HasSubstr("\"Node\""), HasSubstr("did you mean Nodes?"),
                    HasSubstr("SwitchName, Nodes, Switches, LinkSpeed")));
  EXPECT_THAT(slurm_problem("BlockName=b0 Nodes=a"),
              AllOf(StartsWith("topology.conf:1: "), HasSubstr("\"BlockName\"")));
  EXPECT_THAT(slurm_problem("\ninclude other.conf"),
              AllOf(StartsWith("topology.conf:2: "), HasSubstr("Include is not read")));
  EXPECT_THAT(slurm_problem("hosts: [a]"), AllOf(StartsWith("topology.conf:1: "), HasSubstr("unknown key")));
}

TEST(SlurmTest, RefusesLinesThatAreIncomplete) {
  EXPECT_THAT(slurm_problem("Nodes=a"), AllOf(StartsWith("topology.conf:1: "), HasSubstr("names no switch")));
  EXPECT_THAT(slurm_problem("SwitchName=s0"), AllOf(StartsWith("topology.conf:1: "), HasSubstr("nothing below it")));
  EXPECT_THAT(slurm_problem("SwitchName= Nodes=a"),
              AllOf(StartsWith("topology.conf:1: "), HasSubstr("SwitchName has no value")));
  EXPECT_THAT(slurm_problem("SwitchName Nodes=a"), HasSubstr("SwitchName has no value"));
  EXPECT_THAT(slurm_problem("SwitchName=s Nodes=a Nodes=b"), HasSubstr("Nodes stands twice"));
  EXPECT_THAT(slurm_problem("SwitchName=s[0-1] Nodes=a"), HasSubstr("several switches"));
  EXPECT_THAT(slurm_problem("SwitchName=s Nodes=a[1-"),
              AllOf(StartsWith("topology.conf:1: Nodes: "), HasSubstr("[ without a ]")));
  EXPECT_THAT(slurm_problem("SwitchName=s Nodes=a,,b"), HasSubstr("is empty"));
}

TEST(SlurmTest, RefusesSpeedsThatMakeNoSense) {
  for (const std::string speed : {"0", "-1", "fast", "1e999Mbps", "1.2.3", "nan"}) {
    EXPECT_THAT(slurm_problem("SwitchName=s Nodes=a LinkSpeed=" + speed),
                StartsWith("topology.conf:1: LinkSpeed: bandwidth"))
        << speed;
  }
}

TEST(SlurmTest, RefusesWhatIsNoTree) {
  EXPECT_THAT(
      slurm_problem("SwitchName=s Nodes=a\nSwitchName=top Switches=s,t"),
      AllOf(StartsWith("topology.conf:2: "), HasSubstr("\"t\""), HasSubstr("not defined"), HasSubstr("SwitchName=t")));
  EXPECT_THAT(slurm_problem("SwitchName=s Nodes=a\nSwitchName=x Switches=s\nSwitchName=y Switches=s"),
              AllOf(StartsWith("topology.conf:3: "), HasSubstr("\"s\" is below both \"x\" and \"y\"")));
  EXPECT_THAT(slurm_problem("SwitchName=s Nodes=a\nSwitchName=t Nodes=b"),
              AllOf(StartsWith("topology.conf:2: "), HasSubstr("expected one root")));
  EXPECT_THAT(slurm_problem("SwitchName=s Switches=t Nodes=a\nSwitchName=t Switches=s"),
              AllOf(StartsWith("topology.conf:1: "), HasSubstr("cycle, s -> t -> s")));
  EXPECT_THAT(slurm_problem("SwitchName=s Nodes=a\nSwitchName=s Nodes=b"),
              AllOf(StartsWith("topology.conf:2: "), HasSubstr("two switches named \"s\"")));
  EXPECT_THAT(slurm_problem("SwitchName=s Nodes=a\nSwitchName=t Nodes=a\nSwitchName=u Switches=s,t"),
              AllOf(StartsWith("topology.conf:2: "), HasSubstr("two hosts named \"a\"")));
}

TEST(SlurmTest, RefusesFilesWithoutSwitchesAndNoise) {
  for (const std::string text : {"", "\n# nothing\n", "\\\n"}) {
    EXPECT_THAT(slurm_problem(text),
                AllOf(StartsWith("topology.conf: "), HasSubstr("no switch"), HasSubstr("SwitchName=")))
        << text;
  }
  EXPECT_THAT(slurm_problem(std::string("SwitchName=s\n\0", 14)),
              AllOf(StartsWith("topology.conf:2: "), HasSubstr("0x00")));
  EXPECT_THAT(slurm_problem(std::string(7'000'000, 'x')),
              AllOf(StartsWith("topology.conf:1: unknown key \"xxx"), HasSubstr("...")));
  EXPECT_THAT(slurm_problem(std::string(10'000'000, 'x')), HasSubstr("too large"));
}

}  // namespace
}  // namespace dssync
