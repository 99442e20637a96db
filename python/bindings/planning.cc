// Topologies and plans. Python reads a plan as plain values and keeps the object to hand it back.
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "bindings.h"
#include "dssync/base/units.h"
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

PlanOnNetwork best_plan(const Topology& topology, double bytes, double disagreement, int group_limit) {
  const py::gil_scoped_release release;
  return {Planner(topology, bytes, group_limit).require(disagreement), topology};
}

PlanOnNetwork published_plan(const Topology& topology, double bytes, int group_limit) {
  const py::gil_scoped_release release;
  return {Planner(topology, bytes, group_limit).published(), topology};
}

py::list rounds_of(const Plan& plan) {
  py::list result;
  for (const Round& round : plan.rounds) result.append(py::make_tuple(round.label, py::cast(round.groups)));
  return result;
}

py::dict cost_of_plan(const PlanOnNetwork& on) {
  py::dict links;
  for (std::size_t id = 0; id < on.plan.cost.links.size(); ++id) {
    const LinkUse& use = on.plan.cost.links[id];
    links[py::cast(on.topology.links()[id].name)] = py::make_tuple(use.bytes_per_iteration, use.seconds);
  }
  py::dict cost;
  cost["seconds_per_iteration"] = on.plan.cost.seconds_per_iteration;
  cost["latency_seconds"] = on.plan.cost.latency_seconds;
  cost["bottleneck"] = on.plan.cost.bottleneck == kNone ? py::object(py::none())
                                                        : py::cast(on.topology.link(on.plan.cost.bottleneck).name);
  cost["links"] = links;
  return cost;
}

}  // namespace

void bind_planning(py::module_& module) {
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
      .def_property_readonly("cost", &cost_of_plan);
  module.def("best_plan", &best_plan);
  module.def("published_plan", &published_plan);
}

}  // namespace dssync::python
