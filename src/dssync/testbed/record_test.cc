// Records in a folder of their own: what is written is read, names are used once, and no foreign folder is trusted.
#include "dssync/testbed/record.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/base/temporary_folder.h"
#include "dssync/testbed/error.h"
#include "dssync/testbed/processes.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RecordTest : public ::testing::Test {
 protected:
  Registry registry() const { return Registry(folder_.path()); }

  static TestbedRecord record(const std::string& name) {
    TestbedRecord result;
    result.name = name;
    result.source = "file \"of\" hosts.yaml";
    result.builder = getpid();
    result.builder_start = process_start(getpid());
    result.boot = boot_id();
    result.blueprint = blueprint_of(testing::racks(2, 2, 1e6, 5e5), "127.1.2.3 127.4.5.6");
    result.descriptors = {11, 12, 13, 14};
    return result;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const TestbedRecord& found : registry().list()) result.push_back(found.name);
    return result;
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(RecordTest, WhatIsWrittenIsRead) {
  TestbedRecord written = record("lab");
  registry().add(written);
  const std::vector<TestbedRecord> found = registry().list();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(record_as_json(found[0]), record_as_json(written));
  EXPECT_EQ(found[0].blueprint.links[3].device, written.blueprint.links[3].device);
  EXPECT_THAT(found[0].descriptors, ElementsAre(11, 12, 13, 14));
  EXPECT_TRUE(found[0].builder_is_alive());
}

TEST_F(RecordTest, ANameIsUsedOnce) {
  TestbedRecord first = record("lab");
  TestbedRecord second = record("lab");
  registry().add(first);
  EXPECT_THROW(registry().add(second), InputError);
  registry().remove("lab");
  registry().add(second);
  EXPECT_THAT(names(), ElementsAre("lab"));
}

TEST_F(RecordTest, NamesAreMadeUpFromTheSmallestNumber) {
  TestbedRecord first = record("");
  TestbedRecord second = record("");
  TestbedRecord third = record("");
  registry().add(first);
  registry().add(second);
  registry().remove("testbed-1");
  registry().add(third);
  EXPECT_EQ(third.name, "testbed-1");
  EXPECT_THAT(names(), ElementsAre("testbed-1", "testbed-2"));
}

TEST_F(RecordTest, NamesCannotLeaveTheFolder) {
  for (const char* name : {"../lab", "a/b", ".hidden", "-flag", "a b", "a\n"}) {
    TestbedRecord bad = record(name);
    EXPECT_THROW(registry().add(bad), InputError) << name;
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(RecordTest, ABuilderThatHasEndedIsNotAlive) {
  TestbedRecord gone = record("gone");
  gone.builder_start += 1;  // the number is used again by another process
  EXPECT_FALSE(gone.builder_is_alive());
  gone = record("gone");
  gone.boot = "another";
  EXPECT_FALSE(gone.builder_is_alive());
}

TEST_F(RecordTest, AFolderThatOthersMayWriteToIsRefused) {
  ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
  TestbedRecord lab = record("lab");
  EXPECT_THROW(registry().add(lab), TestbedError);
  EXPECT_THROW(registry().list(), TestbedError);
}

TEST_F(RecordTest, AFolderOfSomebodyElseIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a folder of somebody else";
  ASSERT_EQ(chown(folder_.path().c_str(), 12345, 12345), 0);
  TestbedRecord lab = record("lab");
  EXPECT_THROW(registry().add(lab), TestbedError);
  ASSERT_EQ(chown(folder_.path().c_str(), 0, 0), 0);
}

TEST_F(RecordTest, ADamagedRecordIsNamed) {
  std::ofstream(folder_ / "lab.json") << "{\"name\": 3}";
  try {
    registry().list();
    FAIL() << "accepted";
  } catch (const TestbedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("lab.json"));
  }
}

TEST_F(RecordTest, DraftsOfKilledBuildersAreRemoved) {
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  waitpid(ended, nullptr, 0);
  const std::filesystem::path left = folder_ / (".draft-" + std::to_string(ended));
  const std::filesystem::path under_way = folder_ / (".draft-" + std::to_string(getpid()));
  for (const auto& file : {left, under_way}) std::ofstream(file) << "{";
  registry().remove_drafts();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(under_way));
  Registry(folder_ / "nowhere").remove_drafts();
}

TEST_F(RecordTest, NoFolderIsNoTestbed) { EXPECT_THAT(Registry(folder_ / "nowhere").list(), IsEmpty()); }

}  // namespace
}  // namespace dssync
