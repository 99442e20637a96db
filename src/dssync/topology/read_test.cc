// Files: which reader takes them, what cannot be read, and that every example can.
#include "dssync/topology/read.h"

#include <algorithm>
#include <fstream>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/base/temporary_folder.h"

namespace dssync {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace fs = std::filesystem;

class ReadTest : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    testing::write_file(folder_ / name, text);
    return folder_ / name;
  }

  static std::string message_of(const fs::path& file) {
    try {
      read_topology(file);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }

  const testing::TemporaryFolder folder_;
};

const std::string kYaml = "hosts: [{name: h, nic: 1Gbps}]\n";
const std::string kSlurm = "# rack\n\nSwitchName=s Nodes=a,b\n";

TEST_F(ReadTest, TheEndingOfTheNamePicksTheFormat) {
  EXPECT_EQ(read_topology(write("net.yaml", kYaml)).topology.workers(), 1);
  EXPECT_EQ(read_topology(write("net.YML", kYaml)).topology.workers(), 1);
  EXPECT_EQ(read_topology(write("topology.conf", kSlurm)).topology.workers(), 2);
  EXPECT_THAT(message_of(write("yaml.conf", kYaml)), HasSubstr("yaml.conf:1: unknown key"));
}

TEST_F(ReadTest, OtherwiseTheFirstMeaningfulLineDoes) {
  EXPECT_EQ(read_topology(write("net", kYaml)).topology.workers(), 1);
  EXPECT_EQ(read_topology(write("net.txt", "\xEF\xBB\xBF" + kSlurm)).topology.workers(), 2);
  EXPECT_THAT(message_of(write("empty", "")), HasSubstr("is empty"));
}

TEST_F(ReadTest, MessagesNameTheFile) {
  const fs::path file = write("bad.yaml", "hosts:\n- {name: h, nic: 5}\n");
  EXPECT_THAT(message_of(file), StartsWith(file.string() + ":2: nic: "));
}

TEST_F(ReadTest, RefusesWhatIsNoReadableFile) {
  EXPECT_THAT(message_of(folder_.path()),
              AllOf(StartsWith(folder_.path().string() + ": "), HasSubstr("is a directory")));
  EXPECT_THAT(message_of(folder_ / "missing.yaml"), HasSubstr("missing.yaml: cannot be read (No such file"));
  EXPECT_THAT(message_of(""), HasSubstr("the name of the topology file is empty"));
  EXPECT_THAT(message_of(write("file", kYaml) / "below.yaml"), HasSubstr("cannot be read"));
  fs::create_symlink("loop.yaml", folder_ / "loop.yaml");
  EXPECT_THAT(message_of(folder_ / "loop.yaml"), HasSubstr("cannot be read"));
}

TEST_F(ReadTest, RefusesAFileWithoutPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const fs::path file = write("secret.yaml", kYaml);
  fs::permissions(file, fs::perms::none);
  EXPECT_THAT(message_of(file), HasSubstr("cannot be read (Permission denied)"));
}

TEST_F(ReadTest, StopsReadingAtTheLimit) {
  EXPECT_THAT(message_of("/dev/zero"), HasSubstr("/dev/zero:1: there is a byte 0x00"));
  EXPECT_THAT(message_of(write("large.yaml", std::string(9'000'000, ' '))), HasSubstr("too large"));
}

struct Example {
  const char* file;
  int workers;
  int levels;  // of switches
};

// How a failing case is called: by its file.
void PrintTo(const Example& example, std::ostream* out) { *out << example.file; }

class ExampleTest : public ::testing::TestWithParam<Example> {};

int depth_of(const Topology& topology) {
  std::vector<int> level(topology.nodes().size(), 1);
  int most = 0;
  for (std::size_t id = 0; id < level.size(); ++id) {
    const Node& node = topology.nodes()[id];
    if (node.kind == Node::Kind::kHost) continue;
    if (node.parent != kNone) level[id] = level[static_cast<std::size_t>(node.parent)] + 1;
    most = std::max(most, level[id]);
  }
  return most;
}

const fs::path kExamples = fs::path(DSSYNC_SOURCE_DIR) / "examples" / "topologies";

TEST_P(ExampleTest, IsReadAsDescribed) {
  const Example& example = GetParam();
  const ReadResult result = read_topology(kExamples / example.file);
  EXPECT_EQ(result.topology.workers(), example.workers);
  EXPECT_EQ(depth_of(result.topology), example.levels);
  EXPECT_EQ(result.notes.empty(), std::string(example.file).ends_with(".yaml"));
}

constexpr Example kExpected[] = {{"flat.yaml", 8, 1},
                                 {"two-racks.yaml", 8, 2},
                                 {"contended-racks.yaml", 8, 2},
                                 {"four-racks-oversubscribed.yaml", 32, 2},
                                 {"slow-nic.yaml", 8, 1},
                                 {"two-sites-wan.yaml", 16, 3},
                                 {"three-levels.yaml", 64, 3},
                                 {"slurm-topology.conf", 16, 2}};

INSTANTIATE_TEST_SUITE_P(Shipped, ExampleTest, ::testing::ValuesIn(kExpected));

TEST(ExamplesTest, EveryFileIsInTheTable) {
  std::set<std::string> expected{"README.md"};
  for (const Example& example : kExpected) expected.insert(example.file);
  std::set<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(kExamples))
    found.insert(entry.path().filename().string());
  EXPECT_EQ(found, expected);
}

TEST(ExamplesTest, FourRacksAreOversubscribedFourfold) {
  const Topology topology = read_topology(kExamples / "four-racks-oversubscribed.yaml").topology;
  const Node& rack = topology.node(topology.node(topology.root()).children.front());
  double below = 0;
  for (const NodeId host : rack.children) below += topology.link(topology.node(host).up).capacity.bytes_per_second;
  EXPECT_DOUBLE_EQ(below / topology.link(rack.up).capacity.bytes_per_second, 4);
}

}  // namespace
}  // namespace dssync
