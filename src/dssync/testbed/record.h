// What is known of a running testbed to other processes: a JSON file for each in one folder. Several processes may use
// the folder at once. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "dssync/testbed/blueprint.h"

namespace dssync {

struct TestbedRecord {
  std::string name;
  std::string source;  // the topology's file, as given; may be empty
  pid_t builder = -1;  // the process that built it and holds its namespaces
  std::uint64_t builder_start =
      0;                         // when that process started, in ticks since the machine did; a pid alone is used again
  std::string boot;              // which start of the machine that was
  std::vector<int> descriptors;  // the builder's, of each host's namespace, in the order of blueprint.hosts
  Blueprint blueprint;

  bool builder_is_alive() const;
};

std::string record_as_json(const TestbedRecord& record);
// Throws TestbedError, naming `file`, where the text is no record.
TestbedRecord record_from_json(const std::string& text, const std::string& file);

// That every link has carried so far, by LinkId. Throws TestbedError where the builder has ended.
std::vector<std::uint64_t> bytes_carried(const TestbedRecord& record);

class Registry {
 public:
  // That of this user: $DSSYNC_STATE if set, else /run/dssync for root, $XDG_RUNTIME_DIR/dssync or /tmp/dssync-UID for
  // others.
  static Registry of_user();
  explicit Registry(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Gives the record a name, if it has none, and writes it. Throws InputError for a name that is taken or makes no
  // sense, TestbedError where the folder cannot be used: it must belong to this user, and nobody else may write to it.
  void add(TestbedRecord& record) const;
  void remove(const std::string& name) const;

  // All, by name; those of builders that were killed as well.
  std::vector<TestbedRecord> list() const;

  // Removes what builders left that were killed while they wrote their record.
  void remove_drafts() const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path file_of(const std::string& name) const;

  std::filesystem::path folder_;
};

// Throws InputError unless the name can be that of a testbed.
void check_testbed_name(const std::string& name);

}  // namespace dssync
