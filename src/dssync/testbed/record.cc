#include "dssync/testbed/record.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/testbed/error.h"
#include "dssync/testbed/processes.h"

namespace dssync {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDraft = ".draft-";  // and the process that writes it

Json hosts_json(const TestbedRecord& record) {
  Json hosts = Json::array();
  for (std::size_t i = 0; i < record.blueprint.hosts.size(); ++i) {
    const HostPlan& host = record.blueprint.hosts[i];
    hosts.push_back(
        {{"node", host.node}, {"address", host.address}, {"mac", host.mac}, {"descriptor", record.descriptors.at(i)}});
  }
  return hosts;
}

Json nodes_json(const Blueprint& blueprint) {
  Json nodes = Json::array();
  for (const NodePlan& node : blueprint.nodes) {
    nodes.push_back({{"name", node.name},
                     {"is_host", node.is_host},
                     {"parent", node.parent},
                     {"up", node.up},
                     {"down", node.down}});
  }
  return nodes;
}

Json links_json(const Blueprint& blueprint) {
  Json links = Json::array();
  for (const LinkPlan& link : blueprint.links) {
    links.push_back({{"name", link.name},
                     {"bytes_per_second", link.capacity.bytes_per_second},
                     {"latency_seconds", link.latency.count()},
                     {"host", link.host},
                     {"device", link.device},
                     {"counter", link.counter},
                     {"is_received", link.is_received}});
  }
  return links;
}

Blueprint blueprint_from(const Json& json) {
  Blueprint plan;
  plan.fabric_address = json.at("fabric_address").get<std::string>();
  plan.fabric_mac = json.at("fabric_mac").get<std::string>();
  plan.mark = json.at("mark").get<std::string>();
  for (const Json& node : json.at("nodes")) {
    plan.nodes.push_back({.name = node.at("name").get<std::string>(),
                          .is_host = node.at("is_host").get<bool>(),
                          .parent = node.at("parent").get<NodeId>(),
                          .up = node.at("up").get<LinkId>(),
                          .down = node.at("down").get<LinkId>()});
  }
  for (const Json& host : json.at("hosts")) {
    plan.hosts.push_back({.node = host.at("node").get<NodeId>(),
                          .address = host.at("address").get<std::string>(),
                          .mac = host.at("mac").get<std::string>()});
  }
  for (const Json& link : json.at("links")) {
    plan.links.push_back({.name = link.at("name").get<std::string>(),
                          .capacity = {link.at("bytes_per_second").get<double>()},
                          .latency = Seconds(link.at("latency_seconds").get<double>()),
                          .host = link.at("host").get<NodeId>(),
                          .device = link.at("device").get<std::string>(),
                          .counter = link.at("counter").get<std::string>(),
                          .is_received = link.at("is_received").get<bool>()});
  }
  return plan;
}

// The user as the rest of the machine sees it: in a user namespace of our own making (one user, who is root in it), the
// one who made it.
uid_t outer_user() {
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  map >> inside >> outside >> count;
  return map && count == 1 && inside == geteuid() ? static_cast<uid_t>(outside) : geteuid();
}

std::filesystem::path folder_of_user() {
  if (const char* given = std::getenv("DSSYNC_STATE"); given != nullptr && *given != '\0') {
    return std::filesystem::absolute(given);
  }
  const uid_t user = outer_user();
  if (user == 0) return "/run/dssync";
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') return std::filesystem::path(runtime) / "dssync";
  return fmt::format("/tmp/dssync-{}", user);
}

// Makes the folder, if need be, and makes sure that it is only ours.
void prepare_folder(const std::filesystem::path& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw TestbedError(fmt::format("cannot make the folder {}: {}", folder.string(), std::strerror(errno)));
  }
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0) {
    throw TestbedError(fmt::format("cannot use the folder {}: {}", folder.string(), std::strerror(errno)));
  }
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw TestbedError(fmt::format(
        "will not use {} for the state of testbeds: it must be a folder of this user that nobody else may write to",
        folder.string()));
  }
}

std::optional<std::string> read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

bool TestbedRecord::builder_is_alive() const {
  return boot == boot_id() && process_start(builder) == builder_start && !is_ending(builder);
}

std::string record_as_json(const TestbedRecord& record) {
  Json json;
  json["name"] = record.name;
  json["source"] = record.source;
  json["builder"] = record.builder;
  json["builder_start"] = record.builder_start;
  json["boot"] = record.boot;
  json["fabric_address"] = record.blueprint.fabric_address;
  json["fabric_mac"] = record.blueprint.fabric_mac;
  json["mark"] = record.blueprint.mark;
  json["nodes"] = nodes_json(record.blueprint);
  json["hosts"] = hosts_json(record);
  json["links"] = links_json(record.blueprint);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

TestbedRecord record_from_json(const std::string& text, const std::string& file) {
  try {
    const Json json = Json::parse(text);
    TestbedRecord record;
    record.name = json.at("name").get<std::string>();
    record.source = json.at("source").get<std::string>();
    record.builder = json.at("builder").get<pid_t>();
    record.builder_start = json.at("builder_start").get<std::uint64_t>();
    record.boot = json.at("boot").get<std::string>();
    for (const Json& host : json.at("hosts")) record.descriptors.push_back(host.at("descriptor").get<int>());
    record.blueprint = blueprint_from(json);
    return record;
  } catch (const Json::exception&) {
    throw TestbedError(fmt::format("{} does not describe a testbed; if no testbed runs, remove it", file));
  }
}

std::vector<std::uint64_t> bytes_carried(const TestbedRecord& record) {
  // The builder is in the fabric, wherever the caller is.
  const std::optional<std::string> counters = read_file(fmt::format("/proc/{}/net/dev", record.builder));
  if (!counters) throw TestbedError(fmt::format("testbed {} is gone: its process has ended", record.name));
  return bytes_by_link(record.blueprint.links, *counters);
}

void check_testbed_name(const std::string& name) {
  const auto is_fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  const bool starts_well = !name.empty() && name.front() != '-' && name.front() != '.';
  if (starts_well && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_fine)) return;
  throw InputError(fmt::format(
      "{} cannot be the name of a testbed: expected letters, digits, '-', '_' and '.', at most 64", quote(name)));
}

Registry Registry::of_user() { return Registry(folder_of_user()); }

std::filesystem::path Registry::file_of(const std::string& name) const { return folder_ / (name + ".json"); }

void Registry::add(TestbedRecord& record) const {
  if (!record.name.empty()) check_testbed_name(record.name);
  prepare_folder(folder_);
  const bool is_named = !record.name.empty();
  const std::filesystem::path draft = folder_ / fmt::format("{}{}", kDraft, record.builder);
  for (int number = 1;; ++number) {
    if (!is_named) record.name = fmt::format("testbed-{}", number);
    std::ofstream out(draft, std::ios::binary | std::ios::trunc);
    out << record_as_json(record);
    out.close();
    // A link, unlike a rename, fails where somebody was first; and nobody ever sees half a file.
    const bool is_written = !out.fail();
    const bool is_done = is_written && link(draft.c_str(), file_of(record.name).c_str()) == 0;
    const int cause = errno;
    unlink(draft.c_str());
    if (is_done) return;
    if (!is_written || cause != EEXIST) {
      throw TestbedError(fmt::format("cannot write to {}: {}", folder_.string(), std::strerror(cause)));
    }
    if (is_named)
      throw InputError(fmt::format("there is a testbed {} already; see dssync testbed status", record.name));
  }
}

void Registry::remove(const std::string& name) const { unlink(file_of(name).c_str()); }

void Registry::remove_drafts() const {
  std::error_code none;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder_, none)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kDraft)) continue;
    const pid_t writer = std::atoi(name.c_str() + kDraft.size());
    if (kill(writer, 0) != 0 && errno == ESRCH) unlink(entry.path().c_str());
  }
}

std::vector<TestbedRecord> Registry::list() const {
  std::vector<TestbedRecord> result;
  std::error_code none;
  std::filesystem::directory_iterator entries(folder_, none);
  if (none) {
    if (none == std::errc::no_such_file_or_directory) return result;
    throw TestbedError(fmt::format("cannot read {}: {}", folder_.string(), none.message()));
  }
  prepare_folder(folder_);
  for (const std::filesystem::directory_entry& entry : entries) {
    const std::string name = entry.path().filename();
    if (name.front() == '.' || entry.path().extension() != ".json") continue;
    // One that has just been removed is simply not there.
    if (const auto text = read_file(entry.path())) result.push_back(record_from_json(*text, entry.path()));
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return result;
}

}  // namespace dssync
