// The YAML format: what is read, and a message for whatever is not.
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
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Topology read_yaml(const std::string& text) { return read_yaml_topology(text, "net.yaml").topology; }

std::string yaml_problem(const std::string& text) {
  try {
    read_yaml(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const Link& nic_of(const Topology& topology, int position) {
  return topology.link(topology.node(topology.host_at(position)).up);
}

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

const std::string kTwoRacks =
    "defaults: {nic: 200Mbps}\n"
    "switches:\n"
    "  - {name: core}\n"
    "  - {name: rack-a, parent: core, uplink: 50Mbps, latency: 20ms}\n"
    "  - {name: rack-b, parent: core, uplink: 50Mbps}\n"
    "hosts:\n"
    "  - {name: \"a[0-3]\", switch: rack-a}\n"
    "  - {name: \"b[0-3]\", switch: rack-b, nic: 100Mbps, workers: 2, latency: 50us}\n";

TEST(YamlTest, ReadsHostsSwitchesAndDefaults) {
  const Topology topology = read_yaml(kTwoRacks);
  ASSERT_EQ(topology.workers(), 12);
  EXPECT_EQ(topology.worker_name(0), "a0");
  EXPECT_EQ(topology.worker_name(11), "b3/1");
  EXPECT_DOUBLE_EQ(nic_of(topology, 0).capacity.bytes_per_second, 25e6);
  EXPECT_DOUBLE_EQ(nic_of(topology, 4).capacity.bytes_per_second, 12.5e6);
  EXPECT_DOUBLE_EQ(nic_of(topology, 4).latency.count(), 50e-6);
  const Node& rack_a = topology.node(1);
  EXPECT_EQ(rack_a.name, "rack-a");
  EXPECT_DOUBLE_EQ(topology.link(rack_a.up).capacity.bytes_per_second, 6.25e6);
  EXPECT_DOUBLE_EQ(topology.link(rack_a.up).latency.count(), 0.02);
}

TEST(YamlTest, DefaultsMayStandLastAndReachEverything) {
  const Topology topology = read_yaml(
      "hosts: [{name: h, switch: rack}]\n"
      "switches: [{name: core}, {name: rack, parent: core}]\n"
      "defaults: {nic: 8Mbps, uplink: 16Mbps, latency: 1ms, workers: 3}\n");
  EXPECT_EQ(topology.workers(), 3);
  EXPECT_DOUBLE_EQ(nic_of(topology, 0).capacity.bytes_per_second, 1e6);
  EXPECT_DOUBLE_EQ(nic_of(topology, 0).latency.count(), 1e-3);
  EXPECT_DOUBLE_EQ(topology.link(topology.node(1).up).capacity.bytes_per_second, 2e6);
  EXPECT_DOUBLE_EQ(topology.link(topology.node(1).up).latency.count(), 1e-3);
}

TEST(YamlTest, WithoutSwitchesThereIsOne) {
  const Topology topology = read_yaml("hosts: [{name: h, nic: 1Gbps}]");
  EXPECT_EQ(topology.node(topology.root()).name, "switch");
  EXPECT_EQ(topology.workers(), 1);
  EXPECT_EQ(read_yaml("switches:\nhosts: [{name: h, nic: 1Gbps}]").workers(), 1);
}

TEST(YamlTest, WithOneSwitchHostsNeedNotNameIt) {
  EXPECT_EQ(read_yaml("switches: [{name: tor}]\nhosts: [{name: h, nic: 1Gbps}]").node(0).name, "tor");
}

TEST(YamlTest, RangesWorkOnSwitches) {
  const Topology topology = read_yaml(
      "switches: [{name: core}, {name: \"rack[0-3]\", parent: core, uplink: 1Gbps}]\n"
      "hosts: [{name: h, nic: 1Gbps, switch: rack3}]");
  EXPECT_EQ(topology.node(0).children.size(), 4U);
  EXPECT_EQ(topology.node(1).count, 0);  // rack0 is empty, which is allowed
}

TEST(YamlTest, BlockStyleCrlfAndByteOrderMarkAreRead) {
  EXPECT_EQ(
      read_yaml("\xEF\xBB\xBF---\r\ndefaults:\r\n  nic: 1Gbps\r\nhosts:\r\n  - name: h[0-2]\r\n    workers: 2\r\n")
          .workers(),
      6);
}

TEST(YamlTest, JsonIsRead) {
  EXPECT_EQ(read_yaml(R"({"defaults": {"nic": "1Gbps"}, "hosts": [{"name": "h", "workers": 2}]})").workers(), 2);
}

TEST(YamlTest, AssumptionsFillTheGapsAndAreNoted) {
  Assumptions assumptions;
  assumptions.nic = Bandwidth{125e6};
  assumptions.uplink = Bandwidth{250e6};
  const ReadResult result = read_yaml_topology(
      "switches: [{name: core}, {name: \"rack[0-1]\", parent: core}]\n"
      "hosts: [{name: \"h[0-2]\", switch: rack0}, {name: i, switch: rack1, nic: 8Mbps}]",
      "net.yaml", assumptions);
  EXPECT_DOUBLE_EQ(nic_of(result.topology, 0).capacity.bytes_per_second, 125e6);
  EXPECT_DOUBLE_EQ(nic_of(result.topology, 3).capacity.bytes_per_second, 1e6);
  EXPECT_DOUBLE_EQ(result.topology.link(result.topology.node(1).up).capacity.bytes_per_second, 250e6);
  EXPECT_THAT(result.notes, ElementsAre(AllOf(HasSubstr("3 of 4 hosts"), HasSubstr("1 Gbit/s")),
                                        AllOf(HasSubstr("2 of 3 switches"), HasSubstr("2 Gbit/s"))));
  EXPECT_THAT(read_yaml_topology(kTwoRacks, "net.yaml", assumptions).notes, IsEmpty());
}

TEST(YamlTest, RefusesUnknownKeysAndGuesses) {
  EXPECT_THAT(yaml_problem("host: []"),
              AllOf(StartsWith("net.yaml:1: "), HasSubstr("\"host\""), HasSubstr("did you mean hosts?"),
                    HasSubstr("defaults, switches, hosts")));
  EXPECT_THAT(
      yaml_problem("defaults:\n  nics: 1Gbps"),
      AllOf(StartsWith("net.yaml:2: "), HasSubstr("did you mean nic?"), HasSubstr("nic, uplink, latency, workers")));
  EXPECT_THAT(yaml_problem("switches:\n- name: s\n  bandwidth: 1Gbps"),
              AllOf(StartsWith("net.yaml:3: "), HasSubstr("\"bandwidth\""), HasSubstr("name, parent, uplink, latency"),
                    Not(HasSubstr("did you mean"))));
  EXPECT_THAT(
      yaml_problem("hosts:\n- {name: h, uplink: 1Gbps}"),
      AllOf(StartsWith("net.yaml:2: "), HasSubstr("\"uplink\""), HasSubstr("name, switch, nic, latency, workers")));
}

TEST(YamlTest, RefusesMissingRatesAndSaysHowToGiveThem) {
  EXPECT_THAT(yaml_problem("switches:\n- {name: core}\n- {name: rack, parent: core}\nhosts: [{name: h, nic: 1Gbps}]"),
              AllOf(StartsWith("net.yaml:3: "), HasSubstr("\"rack\" has no uplink"), HasSubstr("under defaults")));
  EXPECT_THAT(yaml_problem("hosts:\n\n- {name: h}"),
              AllOf(StartsWith("net.yaml:3: "), HasSubstr("\"h\" has no nic"), HasSubstr("under defaults")));
}

TEST(YamlTest, RefusesAnUplinkOrLatencyAtTheRoot) {
  EXPECT_THAT(yaml_problem("switches:\n- {name: core, uplink: 1Gbps}\nhosts: [{name: h, nic: 1Gbps}]"),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("an uplink but no parent")));
  EXPECT_THAT(yaml_problem("switches:\n- {name: core, latency: 1ms}\nhosts: [{name: h, nic: 1Gbps}]"),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("latency"), HasSubstr("no parent")));
}

TEST(YamlTest, RefusesWhatIsNoTree) {
  const std::string hosts = "hosts: [{name: h, switch: a}]\ndefaults: {nic: 1Gbps, uplink: 1Gbps}\n";
  EXPECT_THAT(yaml_problem(hosts + "switches:\n- {name: a, parent: b}\n- {name: b, parent: a}"),
              AllOf(StartsWith("net.yaml:4: "), HasSubstr("cycle, a -> b -> a")));
  EXPECT_THAT(yaml_problem(hosts + "switches:\n- {name: a, parent: nowhere}"),
              AllOf(StartsWith("net.yaml:4: "), HasSubstr("\"nowhere\", which is not defined")));
  EXPECT_THAT(yaml_problem(hosts + "switches:\n- {name: a}\n- {name: b}"),
              AllOf(StartsWith("net.yaml:5: "), HasSubstr("one root")));
  EXPECT_THAT(yaml_problem(hosts + "switches:\n- {name: a}\n- {name: a, parent: a}"),
              AllOf(StartsWith("net.yaml:5: "), HasSubstr("two switches named \"a\"")));
  EXPECT_THAT(yaml_problem(hosts + "switches:\n- {name: b}"),
              AllOf(StartsWith("net.yaml:1: "), HasSubstr("\"a\", which is not defined")));
}

TEST(YamlTest, RefusesHostsThatAreMissingDuplicateOrNowhere) {
  EXPECT_THAT(yaml_problem("defaults: {nic: 1Gbps}\nhosts:\n- name: \"h[0-3]\"\n- name: h2"),
              AllOf(StartsWith("net.yaml:4: "), HasSubstr("two hosts named \"h2\"")));
  EXPECT_THAT(
      yaml_problem(
          "defaults: {nic: 1Gbps, uplink: 1Gbps}\nswitches: [{name: a}, {name: b, parent: a}]\nhosts:\n- name: h"),
      AllOf(StartsWith("net.yaml:4: "), HasSubstr("no switch"), HasSubstr("there are 2")));
  EXPECT_THAT(yaml_problem("defaults: {nic: 1Gbps}\nhosts: []"),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("no host")));
  EXPECT_THAT(yaml_problem("hosts:"), AllOf(StartsWith("net.yaml:1: "), HasSubstr("no host")));
  EXPECT_THAT(yaml_problem("defaults: {nic: 1Gbps}"), AllOf(StartsWith("net.yaml: "), HasSubstr("no host")));
  EXPECT_THAT(yaml_problem("hosts:\n- {nic: 1Gbps}"), AllOf(StartsWith("net.yaml:2: "), HasSubstr("no name")));
  EXPECT_THAT(yaml_problem("hosts:\n- {name: \"\", nic: 1Gbps}"),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("empty")));
  EXPECT_THAT(yaml_problem("hosts:\n- {name: \"a b\", nic: 1Gbps}"),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("space")));
  EXPECT_THAT(yaml_problem("hosts:\n- {name: \"a[0-\", nic: 1Gbps}"),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("[ without")));
}

TEST(YamlTest, RefusesRatesThatMakeNoSense) {
  const auto with_nic = [](const std::string& nic) { return yaml_problem("hosts:\n- name: h\n  nic: " + nic); };
  for (const std::string nic :
       {"0Mbps", "-5Mbps", "50", ".nan", ".inf", "nan Mbps", "infMbps", "1e999Mbps", "1e300Gbps", "fast"}) {
    EXPECT_THAT(with_nic(nic), AllOf(StartsWith("net.yaml:3: nic: bandwidth "), HasSubstr("expected"))) << nic;
  }
  EXPECT_THAT(with_nic("0Mbps"), HasSubstr("is zero"));
  EXPECT_THAT(with_nic("-5Mbps"), HasSubstr("is negative"));
  EXPECT_THAT(with_nic("50"), HasSubstr("has no unit"));
  EXPECT_THAT(with_nic("\"\""), HasSubstr("is empty"));
  EXPECT_THAT(yaml_problem("defaults:\n  nic: 0bps\nhosts: [{name: h}]"), StartsWith("net.yaml:2: nic: "));
  EXPECT_THAT(yaml_problem("hosts: [{name: h, nic: 1Gbps, latency: 5}]"),
              StartsWith("net.yaml:1: latency: time \"5\" has no unit"));
}

TEST(YamlTest, RefusesWorkersThatAreNoNumber) {
  for (const std::string workers : {"0", "-1", "1.5", "many", "99999999999", "1000001", "\"\""}) {
    EXPECT_THAT(yaml_problem("hosts:\n- {name: h, nic: 1Gbps, workers: " + workers + "}"),
                AllOf(StartsWith("net.yaml:2: workers is "), HasSubstr("from 1 to 1000000")));
  }
  EXPECT_THAT(yaml_problem("hosts:\n- {name: \"h[0-9]\", nic: 1Gbps, workers: 100001}"),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("too many workers")));
}

TEST(YamlTest, RefusesTheWrongKindOfYaml) {
  EXPECT_THAT(yaml_problem("- a\n- b"), AllOf(StartsWith("net.yaml:1: "), HasSubstr("a list"), HasSubstr("the keys")));
  EXPECT_THAT(yaml_problem("just text"), AllOf(StartsWith("net.yaml:1: "), HasSubstr("\"just text\"")));
  EXPECT_THAT(yaml_problem("defaults: []"),
              AllOf(StartsWith("net.yaml:1: "), HasSubstr("defaults is a list; expected a map")));
  EXPECT_THAT(yaml_problem("defaults: 5"), HasSubstr("defaults is \"5\"; expected a map"));
  EXPECT_THAT(yaml_problem("\nhosts: {name: h}"),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("hosts is a map; expected a list")));
  EXPECT_THAT(yaml_problem("switches: core"), HasSubstr("switches is \"core\"; expected a list"));
  EXPECT_THAT(yaml_problem("hosts:\n- h"),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("an entry of hosts is \"h\"; expected a map")));
  EXPECT_THAT(yaml_problem("hosts:\n- [h]"), HasSubstr("an entry of hosts is a list"));
  EXPECT_THAT(yaml_problem("hosts:\n- name: [h]"), AllOf(StartsWith("net.yaml:2: "), HasSubstr("name is a list")));
  EXPECT_THAT(yaml_problem("hosts:\n- name: {h: i}"), HasSubstr("name is a map"));
  EXPECT_THAT(yaml_problem("hosts:\n- name:\n  nic: 1Gbps"),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("name has no value")));
  EXPECT_THAT(yaml_problem("hosts:\n- \n- name: h"),
              AllOf(StartsWith("net.yaml:"), HasSubstr("an entry of hosts is nothing")));
  EXPECT_THAT(yaml_problem("? {a: b}\n: c"), AllOf(StartsWith("net.yaml:1: "), HasSubstr("a map for a key")));
}

TEST(YamlTest, RefusesKeysThatStandTwice) {
  EXPECT_THAT(yaml_problem("hosts: []\nhosts: []"),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("hosts stands here a second time")));
  EXPECT_THAT(yaml_problem("hosts:\n- name: h\n  name: i"),
              AllOf(StartsWith("net.yaml:3: "), HasSubstr("name stands twice")));
}

TEST(YamlTest, RefusesFilesWithNothingInThem) {
  for (const std::string text : {"", "\n\n", "# only\n# comments\n", "---\n", "~", "\xEF\xBB\xBF"}) {
    EXPECT_THAT(yaml_problem(text), AllOf(StartsWith("net.yaml: "), HasSubstr("is empty"), HasSubstr("hosts")));
  }
}

TEST(YamlTest, RefusesASecondDocument) {
  EXPECT_THAT(yaml_problem("hosts: [{name: h, nic: 1Gbps}]\n---\nhosts: []\n"),
              AllOf(StartsWith("net.yaml:"), HasSubstr("expected one document")));
}

TEST(YamlTest, RefusesStrayBracketsAndCommas) {
  for (const std::string stray : {",", "]", "}", ", ,", "# comment\n,\n"}) {
    EXPECT_THAT(yaml_problem(stray), AllOf(StartsWith("net.yaml:"), HasSubstr("expected"))) << stray;
    EXPECT_THAT(yaml_problem("hosts: [{name: h, nic: 1Gbps}]\n" + stray),
                AllOf(StartsWith("net.yaml:"), HasSubstr("expected")))
        << stray;
  }
  EXPECT_THAT(yaml_problem(","),
              AllOf(StartsWith("net.yaml:1: "), HasSubstr("the file holds no map; expected the keys")));
}

TEST(YamlTest, RefusesAliasesAndSoTheirBombs) {
  EXPECT_THAT(yaml_problem("hosts:\n- &a {name: h, nic: 1Gbps}\n- *a"),
              AllOf(StartsWith("net.yaml:3: "), HasSubstr("alias")));
  EXPECT_THAT(yaml_problem("hosts: &a [*a]"), HasSubstr("alias"));
}

TEST(YamlTest, RefusesBrokenYaml) {
  EXPECT_THAT(yaml_problem("hosts: [{name: h"), AllOf(StartsWith("net.yaml:1: "), HasSubstr("bracket left open")));
  EXPECT_THAT(yaml_problem("hosts:\n- {name: \"h}"), AllOf(StartsWith("net.yaml:2: "), HasSubstr("not YAML")));
  EXPECT_THAT(yaml_problem("hosts:\n- *nobody"), AllOf(StartsWith("net.yaml:2: "), HasSubstr("not YAML")));
  EXPECT_THAT(yaml_problem("defaults:\n\tnic: 1Gbps"), AllOf(StartsWith("net.yaml:2: "), HasSubstr("expected")));
}

TEST(YamlTest, RefusesNoise) {
  std::string noise(10'000'000, '\0');
  unsigned state = 1;
  for (char& c : noise) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24U);
  }
  EXPECT_THAT(yaml_problem(noise), AllOf(StartsWith("net.yaml:1: "), HasSubstr("expected text in UTF-8")));
  EXPECT_THAT(yaml_problem(repeated("a: [b, {c: d}]\n", 700'000)), HasSubstr("too large; expected at most 8 MB"));
  EXPECT_THAT(yaml_problem(repeated("noise ", 1'000'000)),
              AllOf(StartsWith("net.yaml:1: the file holds \"noise noise"), HasSubstr("...")));
}

TEST(YamlTest, RefusesBytesThatAreNoText) {
  EXPECT_THAT(yaml_problem(std::string("hosts:\n\0", 8)), AllOf(StartsWith("net.yaml:2: "), HasSubstr("0x00")));
  EXPECT_THAT(yaml_problem("a\nb\n\x1b[31m"), AllOf(StartsWith("net.yaml:3: "), HasSubstr("0x1b")));
  for (const std::string bytes :
       {"\xff\xfe", "\xc0\x80", "\xed\xa0\x80", "\xe2\x82", "\xf5\x80\x80\x80", "\xf0\x80\x80\x80", "\x80"}) {
    EXPECT_THAT(yaml_problem("\n" + bytes), AllOf(StartsWith("net.yaml:2: "), HasSubstr("not UTF-8")));
  }
}

TEST(YamlTest, RefusesDeepNesting) {
  for (const std::string_view open : {"[", "{", "{a: ", "hosts: [", "- [", "[\n"}) {
    EXPECT_THAT(yaml_problem(repeated(open, 100'000)),
                AllOf(StartsWith("net.yaml:"), HasSubstr("nested more than 64 deep")))
        << open;
  }
  EXPECT_THAT(yaml_problem(repeated("[']' ", 100'000)), StartsWith("net.yaml:1: "));
  EXPECT_THAT(yaml_problem("hosts:\n" + repeated("- ", 100'000)), StartsWith("net.yaml:2: "));
  EXPECT_THAT(yaml_problem(repeated("? ", 100'000)), StartsWith("net.yaml:1: "));
}

TEST(YamlTest, BracketsInCommentsDoNotCountAsNesting) {
  EXPECT_EQ(read_yaml(repeated("# [ {\n", 1000) + "hosts: [{name: h, nic: 1Gbps}] # [[[\n").workers(), 1);
}

TEST(YamlTest, RefusesRangesBeyondTheLimitInAllEntriesTogether) {
  EXPECT_THAT(yaml_problem("defaults: {nic: 1Gbps}\nhosts:\n- name: \"a[1-900000]\"\n- name: \"b[1-900000]\""),
              AllOf(StartsWith("net.yaml:4: "), HasSubstr("at most 100000 ")));
}

}  // namespace
}  // namespace dssync
