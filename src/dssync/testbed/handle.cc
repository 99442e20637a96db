#include "dssync/testbed/handle.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <sys/stat.h>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/testbed/error.h"
#include "dssync/testbed/iproute.h"
#include "dssync/testbed/namespaces.h"
#include "dssync/testbed/processes.h"
#include "dssync/testbed/shaping.h"

namespace dssync {
namespace {

constexpr std::chrono::milliseconds kBuilderPatience{5000};

// The namespaces of a host, or of the fabric, held open.
struct OpenSpace {
  Descriptor user;
  Descriptor network;

  Space get() const { return {.user = user.get(), .network = network.get()}; }
};

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 && first.st_ino == second.st_ino;
}

OpenSpace open_space(const TestbedRecord& record, NodeId host) {
  const std::string process = fmt::format("/proc/{}", record.builder);
  OpenSpace space;
  try {
    if (!is_same_file(process + "/ns/user", "/proc/self/ns/user")) space.user = open_namespace(process + "/ns/user");
    if (host == kNone) {
      space.network = open_namespace(process + "/ns/net");
    } else {
      const HostPlan& plan = host_plan(record.blueprint, host);
      const auto place = static_cast<std::size_t>(&plan - record.blueprint.hosts.data());
      space.network = open_namespace(fmt::format("{}/fd/{}", process, record.descriptors.at(place)));
    }
  } catch (const TestbedError& error) {
    if (record.builder_is_alive()) throw;
    throw TestbedError(fmt::format("testbed {} is gone: its process has ended", record.name));
  }
  if (!record.builder_is_alive())
    throw TestbedError(fmt::format("testbed {} is gone: its process has ended", record.name));
  return space;
}

std::string suggestion(const std::string& text, const std::vector<std::string_view>& known) {
  const std::string_view guess = nearest(text, known);
  if (!guess.empty()) return fmt::format("did you mean {}?", quote(guess));
  constexpr std::size_t kShown = 12;
  const std::vector<std::string_view> shown(
      known.begin(), known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kShown)));
  return fmt::format("there are {}{}", fmt::join(shown, ", "), known.size() > kShown ? ", ..." : "");
}

struct QueueState {
  Bandwidth rate;
  std::uint64_t dropped = 0;
};

// What tc tells of these interfaces in one namespace, by interface.
std::map<std::string, QueueState> queues_in(const Space& space, const std::vector<std::string>& devices) {
  using Json = nlohmann::json;
  std::string queries;
  for (const std::string& device : devices) queries += rate_query(device);
  const std::vector<Bandwidth> rates = shown_rates(run_batch("tc", queries, space));
  if (rates.size() != devices.size()) throw TestbedError("cannot understand tc: a link has no rate");
  std::map<std::string, QueueState> result;
  for (std::size_t i = 0; i < devices.size(); ++i) result[devices[i]].rate = rates[i];
  try {
    for (const Json& queue : Json::parse(run_tool({"tc", "-json", "-statistics", "qdisc", "show"}, space))) {
      const auto found = result.find(queue.value("dev", ""));
      const bool is_whole = queue.value("kind", "") == "htb";
      if (is_whole && found != result.end()) found->second.dropped = queue.value("drops", std::uint64_t{0});
    }
  } catch (const Json::exception& error) {
    throw TestbedError(fmt::format("cannot understand tc: {}", error.what()));
  }
  return result;
}

// tc rounds what it shows.
Bandwidth unrounded(Bandwidth shown, Bandwidth capacity) {
  return std::abs(shown.bytes_per_second / capacity.bytes_per_second - 1) < 1e-3 ? capacity : shown;
}

}  // namespace

TestbedHandle TestbedHandle::find(const std::string& name, const Registry& registry) {
  std::vector<TestbedRecord> all = registry.list();
  std::erase_if(all, [](const TestbedRecord& record) { return !record.builder_is_alive(); });
  if (all.empty()) throw InputError("no testbed is running; start one with dssync testbed up --topology FILE");
  std::vector<std::string_view> names;
  for (const TestbedRecord& record : all) names.push_back(record.name);
  if (name.empty() && all.size() == 1) return TestbedHandle(std::move(all.front()));
  if (name.empty()) {
    throw InputError(fmt::format("several testbeds are running, say which one: {}", fmt::join(names, ", ")));
  }
  for (TestbedRecord& record : all) {
    if (record.name == name) return TestbedHandle(std::move(record));
  }
  throw InputError(fmt::format("no testbed {} is running; {}", quote(name), suggestion(name, names)));
}

NodeId TestbedHandle::host(const std::string& name) const {
  std::vector<std::string_view> known;
  for (const HostPlan& host : record_.blueprint.hosts) {
    const std::string& found = record_.blueprint.nodes[static_cast<std::size_t>(host.node)].name;
    if (found == name) return host.node;
    known.push_back(found);
  }
  throw InputError(fmt::format("no host {} in testbed {}; {}", quote(name), record_.name, suggestion(name, known)));
}

std::vector<LinkId> TestbedHandle::links(const std::string& name) const {
  std::vector<LinkId> found;
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < record_.blueprint.links.size(); ++i) {
    const std::string& link = record_.blueprint.links[i].name;
    known.push_back(link);
    const std::string_view cable = std::string_view(link).substr(0, link.rfind(' '));
    if (link == name || cable == name) found.push_back(static_cast<LinkId>(i));
  }
  if (!found.empty()) return found;
  throw InputError(fmt::format("no link {} in testbed {}; {}", quote(name), record_.name, suggestion(name, known)));
}

void TestbedHandle::enter(NodeId host) const { dssync::enter(open_space(record_, host).get()); }

void TestbedHandle::reshape(LinkId link, Bandwidth rate) const {
  const LinkPlan& plan = record_.blueprint.links.at(static_cast<std::size_t>(link));
  const std::string commands = reshape_batch(plan, rate);
  run_batch("tc", commands, open_space(record_, plan.host).get());
}

Bandwidth TestbedHandle::rate(LinkId link) const {
  const LinkPlan& plan = record_.blueprint.links.at(static_cast<std::size_t>(link));
  const OpenSpace space = open_space(record_, plan.host);
  return unrounded(queues_in(space.get(), {plan.device}).at(plan.device).rate, plan.capacity);
}

std::vector<LinkState> TestbedHandle::traffic() const {
  std::map<NodeId, std::vector<std::string>> devices;  // by namespace
  for (const LinkPlan& link : record_.blueprint.links) devices[link.host].push_back(link.device);
  std::map<NodeId, std::map<std::string, QueueState>> queues;
  for (const auto& [host, names] : devices) queues[host] = queues_in(open_space(record_, host).get(), names);
  const std::vector<std::uint64_t> bytes = bytes_carried(record_);
  std::vector<LinkState> result;
  for (std::size_t i = 0; i < record_.blueprint.links.size(); ++i) {
    const LinkPlan& link = record_.blueprint.links[i];
    const QueueState& queue = queues.at(link.host).at(link.device);
    result.push_back({.name = link.name,
                      .capacity = link.capacity,
                      .rate = unrounded(queue.rate, link.capacity),
                      .bytes = bytes[i],
                      .dropped = queue.dropped});
  }
  return result;
}

EndedTestbed end_testbed(const TestbedRecord& record, const Registry& registry) {
  EndedTestbed result{.name = record.name};
  if (record.builder_is_alive()) {
    if (!end_process(record.builder, record.builder_start, kBuilderPatience)) {
      throw TestbedError(fmt::format("could not end process {} of testbed {}", record.builder, record.name));
    }
    result.processes = 1;
  } else {
    result.was_left_over = true;
  }
  result.processes += end_marked(record.blueprint.mark);
  registry.remove(record.name);
  return result;
}

}  // namespace dssync
