// Topologies and plans. Python reads a plan as plain values and keeps the object to hand it back.
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "bindings.h"
#include "dssync/base/units.h"
#include "dssync/method/cost.h"
#include "dssync/method/method.h"
#include "dssync/planner/exact_inside.h"
#include "dssync/topology/read.h"
#include "dssync/topology/write.h"

namespace dssync::python {
namespace {

namespace py = pybind11;

std::vector<std::string> worker_names(const Topology& topology) {
  std::vector<std::string> names;
  for (Rank rank = 0; rank < topology.workers(); ++rank) names.push_back(topology.worker_name(rank));
  return names;
}

PlanOnNetwork make_plan(const Topology& topology, double bytes, double disagreement, int group_limit, bool published,
                        const std::string& exact_inside) {
  const py::gil_scoped_release release;
  Planner planner = planner_for(topology, {.bytes = bytes,
                                           .disagreement = disagreement,
                                           .group_limit = group_limit,
                                           .published = published,
                                           .exact_inside = exact_inside_from_name(exact_inside)});
  return {published ? planner.published() : planner.require(disagreement), topology};
}

py::list rounds_of(const Plan& plan) {
  py::list result;
  for (const Round& round : plan.rounds) result.append(py::make_tuple(round.label, py::cast(round.groups)));
  return result;
}

py::dict to_dict(const Cost& cost, const Topology& topology) {
  py::dict links;
  for (std::size_t id = 0; id < cost.links.size(); ++id) {
    const LinkUse& use = cost.links[id];
    links[py::cast(topology.links()[id].name)] = py::make_tuple(use.bytes_per_iteration, use.seconds);
  }
  py::dict result;
  result["seconds_per_iteration"] = cost.seconds_per_iteration;
  result["latency_seconds"] = cost.latency_seconds;
  result["bottleneck"] =
      cost.bottleneck == kNone ? py::object(py::none()) : py::cast(topology.link(cost.bottleneck).name);
  result["links"] = links;
  return result;
}

}  // namespace

void bind_planning(py::module_& module) {
  module.attr("default_disagreement") = kDefaultDisagreement;
  py::class_<Topology>(module, "Topology")
      .def_property_readonly("workers", &Topology::workers)
      .def_property_readonly("names", &worker_names)
      .def("yaml", &write_yaml_topology);
  module.def("read_topology", [](const std::filesystem::path& file) {
    ReadResult result = read_topology(file);
    return std::pair(std::move(result.topology), std::move(result.notes));
  });
  module.def("parse_topology", [](const std::string& text) { return read_yaml_topology(text, "topology").topology; });
  module.def("parse_bytes", [](const std::string& text) { return parse_bytes(text); });
  module.def("format_duration", [](double seconds) { return format_duration(Seconds(seconds)); });

  py::class_<PlanOnNetwork>(module, "Plan")
      .def_property_readonly("names", [](const PlanOnNetwork& on) { return worker_names(on.topology); })
      .def_property_readonly("rounds", [](const PlanOnNetwork& on) { return rounds_of(on.plan); })
      .def_property_readonly("shards", [](const PlanOnNetwork& on) { return on.plan.shards; })
      .def_property_readonly("mixing",
                             [](const PlanOnNetwork& on) {
                               const Mixing& mixing = on.plan.mixing;
                               return std::tuple(mixing.cycle_norm, mixing.steady_disagreement, mixing.exact());
                             })
      .def_property_readonly("cost", [](const PlanOnNetwork& on) { return to_dict(on.plan.cost, on.topology); })
      .def_property_readonly("replicas", [](const PlanOnNetwork& on) { return on.plan.replicas; })
      .def_property_readonly("inside", [](const PlanOnNetwork& on) { return to_dict(on.plan.inside, on.topology); });
  module.def("make_plan", &make_plan);
  module.def("seconds_of_ring", [](const Topology& topology, double bytes) {
    return method_cost(Method::kBspRing, topology, bytes, nullptr).seconds_per_iteration;
  });
}

}  // namespace dssync::python
