#include "testbed/testbed_status.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dssync/testbed/error.h"
#include "dssync/testbed/handle.h"
#include "text/style.h"

namespace dssync::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::string& name_of(const TestbedRecord& record, const HostPlan& host) {
  return record.blueprint.nodes[static_cast<std::size_t>(host.node)].name;
}

std::string headline(const TestbedRecord& record) {
  const std::size_t hosts = record.blueprint.hosts.size();
  return fmt::format("{}: {} and {}{}, process {}\n", record.name, counted(hosts, "host"),
                     counted(record.blueprint.nodes.size() - hosts, "switch"),
                     record.source.empty() ? "" : " of " + printable(record.source), record.builder);
}

std::string host_lines(const TestbedRecord& record) {
  std::size_t widest = 0;
  for (const HostPlan& host : record.blueprint.hosts)
    widest = std::max(widest, width(printable(name_of(record, host))));
  std::string text;
  for (const HostPlan& host : record.blueprint.hosts) {
    text += fmt::format("  {}  {}\n", pad_right(printable(name_of(record, host)), widest), host.address);
  }
  return text;
}

std::string link_lines(const std::vector<LinkState>& links) {
  std::size_t widest = 4;
  for (const LinkState& link : links) widest = std::max(widest, width(printable(link.name)));
  std::string text = fmt::format("  {}  {:>12}  {:>12}  {:>10}  {:>8}\n", pad_right("link", widest), "capacity", "now",
                                 "carried", "dropped");
  for (const LinkState& link : links) {
    const bool is_full = std::abs(link.rate.bytes_per_second / link.capacity.bytes_per_second - 1) < 1e-3;
    text += fmt::format("  {}  {:>12}  {:>12}  {:>10}  {:>8}\n", pad_right(printable(link.name), widest),
                        format_bandwidth(link.capacity), is_full ? "all" : format_bandwidth(link.rate),
                        format_bytes(static_cast<double>(link.bytes)), link.dropped);
  }
  return text;
}

// Nothing where the process has ended, be it while we were looking.
std::optional<std::vector<LinkState>> links_of(const TestbedRecord& record) {
  try {
    if (record.builder_is_alive()) return TestbedHandle(record).traffic();
  } catch (const TestbedError&) {
    if (record.builder_is_alive()) throw;
  }
  return std::nullopt;
}

Json json_of(const TestbedRecord& record) {
  const std::optional<std::vector<LinkState>> links = links_of(record);
  Json json;
  json["name"] = record.name;
  json["topology"] = record.source.empty() ? Json(nullptr) : Json(record.source);
  json["process"] = record.builder;
  json["running"] = links.has_value();
  json["fabric_address"] = record.blueprint.fabric_address;
  json["hosts"] = Json::array();
  for (const HostPlan& host : record.blueprint.hosts) {
    json["hosts"].push_back({{"name", name_of(record, host)}, {"address", host.address}});
  }
  json["links"] = Json::array();
  if (!links) return json;
  for (const LinkState& link : *links) {
    json["links"].push_back({{"name", link.name},
                             {"capacity_bytes_per_second", link.capacity.bytes_per_second},
                             {"rate_bytes_per_second", link.rate.bytes_per_second},
                             {"bytes", link.bytes},
                             {"dropped_frames", link.dropped}});
  }
  return json;
}

}  // namespace

std::string testbed_introduction(const TestbedRecord& record) {
  const std::string first = printable(name_of(record, record.blueprint.hosts.front()));
  return headline(record) + "\n" + host_lines(record) +
         fmt::format(
             "\n"
             "  dssync testbed exec --name {0} {1} -- COMMAND    run something in a host\n"
             "  dssync testbed status {0}    what the links carry\n"
             "  dssync testbed down {0}    end it\n",
             record.name, first);
}

std::string testbeds_as_text(const std::vector<TestbedRecord>& records) {
  if (records.empty()) return "no testbed is there\n";
  std::string text;
  for (const TestbedRecord& record : records) {
    if (!text.empty()) text += "\n";
    text += headline(record);
    const std::optional<std::vector<LinkState>> links = links_of(record);
    if (!links) {
      text += fmt::format("  left over: that process has ended; remove it with dssync testbed down {}\n", record.name);
      continue;
    }
    text += "\n" + host_lines(record) + "\n" + link_lines(*links);
  }
  return text;
}

std::string testbeds_as_json(const std::vector<TestbedRecord>& records) {
  Json testbeds = Json::array();
  for (const TestbedRecord& record : records) testbeds.push_back(json_of(record));
  return Json{{"testbeds", testbeds}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dssync::cli
