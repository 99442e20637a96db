// Worlds and synchronizers. Every call that may wait for others releases the GIL; c10d's objects come from Python.
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/chrono.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "dssync/comm/world.h"
#include "dssync/live/discover_network.h"
#include "dssync/sync/stepper.h"
#include "dssync/sync/synchronizer.h"

namespace dssync::python {
namespace {

namespace py = pybind11;
using WithoutGil = py::call_guard<py::gil_scoped_release>;
using Named = std::vector<std::pair<std::string, at::Tensor>>;
using State = std::vector<std::pair<std::string, Named>>;

std::vector<NamedTensor> named_tensors(const Named& named) {
  std::vector<NamedTensor> result;
  for (const auto& [name, tensor] : named) result.push_back({name, tensor});
  return result;
}

std::vector<OptimizerState> optimizer_states(const State& state) {
  std::vector<OptimizerState> result;
  for (const auto& [name, tensors] : state) result.push_back({name, named_tensors(tensors)});
  return result;
}

// From the store in which a group meets, and this worker's number and the size in it, to the group.
using PythonGroupMaker = std::function<Channel(const Store& store, int index, int size)>;

// Groups meet in the world's own store, where a lost worker is heard of.
class ChannelMaker {
 public:
  explicit ChannelMaker(PythonGroupMaker make) : make_(std::move(make)) {}

  void set_store(const Store& store) { *store_ = store; }

  Channel operator()(const std::vector<Rank>& members, int index, const std::string& name) const {
    return make_(c10::make_intrusive<c10d::PrefixStore>(name, *store_), index, static_cast<int>(members.size()));
  }

 private:
  PythonGroupMaker make_;
  std::shared_ptr<Store> store_ = std::make_shared<Store>();  // shared by copies; known once there is a world
};

std::shared_ptr<World> make_world(Store store, Store liveness_connection, WorldOptions options,
                                  PythonGroupMaker make_group) {
  std::optional<ChannelMaker> maker;
  if (make_group) options.make_channel = maker.emplace(std::move(make_group));
  auto world = std::make_shared<World>(std::move(store), std::move(options), std::move(liveness_connection));
  if (maker) maker->set_store(world->store());
  return world;
}

// A Stepper with what it uses, ended without the GIL: threads that it waits for may need it.
class Averaging {
 public:
  Averaging(std::shared_ptr<World> world, const Topology& topology, const Replica& replica, const SyncOptions& options)
      : world_(std::move(world)),
        topology_(topology),
        stepper_(std::in_place, make_synchronizer(*world_, replica, topology, options), options.overlap) {}

  ~Averaging() {
    const py::gil_scoped_release release;
    stepper_.reset();
    world_.reset();
  }

  Averaging(const Averaging&) = delete;
  Averaging& operator=(const Averaging&) = delete;

  Stepper& stepper() { return *stepper_; }
  PlanOnNetwork plan() const { return {stepper_->plan(), topology_}; }

 private:
  std::shared_ptr<World> world_;
  const Topology topology_;
  std::optional<Stepper> stepper_;
};

std::unique_ptr<Averaging> make_averaging(std::shared_ptr<World> world, const Topology& topology,
                                          const Named& parameters, const Named& buffers, const Named& frozen,
                                          std::function<State()> state_of_optimizer, const PlanOnNetwork* plan,
                                          const std::map<std::string, std::string>& given) {
  SyncOptions options;
  if (plan != nullptr) options.plan = plan->plan;
  for (const auto& [name, text] : given) set_option(options, name, text);
  Replica replica{named_tensors(parameters), named_tensors(buffers), {}};
  if (state_of_optimizer) {
    replica.optimizer_state = [state = std::move(state_of_optimizer)] { return optimizer_states(state()); };
  }
  replica.frozen = named_tensors(frozen);
  const py::gil_scoped_release release;
  return std::make_unique<Averaging>(std::move(world), topology, replica, options);
}

std::pair<std::int64_t, Named> state_of(Averaging& averaging) {
  const SyncState state = averaging.stepper().state();
  Named tensors;
  for (const auto& [name, tensor] : state.tensors) tensors.emplace_back(name, tensor);
  return {state.iteration, tensors};
}

}  // namespace

void bind_training(py::module_& module) {
  py::module_::import("torch.distributed");  // registers c10d's types
  py::class_<World, std::shared_ptr<World>>(module, "World")
      .def(py::init([](Store store, Store liveness_connection, int rank, int size, std::chrono::milliseconds timeout,
                       std::string address, std::string run, int attempt, int number, std::string store_place,
                       bool rank_0_serves_store, PythonGroupMaker make_group) {
             return make_world(std::move(store), std::move(liveness_connection),
                               {.rank = rank,
                                .size = size,
                                .timeout = timeout,
                                .address = std::move(address),
                                .run = {std::move(run), attempt},
                                .number = number,
                                .store_place = std::move(store_place),
                                .rank_0_serves_store = rank_0_serves_store},
                               std::move(make_group));
           }),
           py::arg("store"), py::arg("liveness_connection").none(true), py::kw_only(), py::arg("rank"), py::arg("size"),
           py::arg("timeout"), py::arg("address"), py::arg("run"), py::arg("attempt"), py::arg("number"),
           py::arg("store_place"), py::arg("rank_0_serves_store"), py::arg("make_group").none(true), WithoutGil())
      .def("agree", &World::agree, WithoutGil())
      .def("report_failure", &World::report_failure, WithoutGil())
      .def("leave", &World::leave, WithoutGil())
      .def_property_readonly("run", [](const World& world) { return to_text(world.membership().run); })
      .def(
          "discover_network", [](World& world) { return discover_network(world).file; }, WithoutGil());

  py::class_<Averaging>(module, "Averaging")
      .def(py::init(&make_averaging), py::arg("world"), py::arg("topology"), py::arg("parameters"), py::arg("buffers"),
           py::arg("frozen"), py::arg("state_of_optimizer").none(true), py::kw_only(), py::arg("plan").none(true),
           py::arg("options"))
      .def(
          "before_step", [](Averaging& averaging) { averaging.stepper().before_step(); }, WithoutGil())
      .def(
          "after_step", [](Averaging& averaging) { averaging.stepper().after_step(); }, WithoutGil())
      .def("drop", [](Averaging& averaging) { averaging.stepper().drop_average(); })
      .def(
          "consolidate", [](Averaging& averaging) { return averaging.stepper().consolidate(); }, WithoutGil())
      .def("state", &state_of)
      .def(
          "load_state",
          [](Averaging& averaging, std::int64_t iteration, const Named& tensors) {
            averaging.stepper().load_state({iteration, named_tensors(tensors)});
          },
          py::arg("iteration"), py::arg("tensors"))
      .def_property_readonly("plan", &Averaging::plan)
      .def_property_readonly("iteration", [](Averaging& averaging) { return averaging.stepper().iteration(); })
      .def_property_readonly("plan_changes", [](Averaging& averaging) { return averaging.stepper().plan_changes(); })
      .def_property_readonly("metrics", [](Averaging& averaging) {
        const SyncMetrics& metrics = averaging.stepper().metrics();
        return std::tuple(metrics.sync_seconds, metrics.bytes_sent, metrics.disagreement, metrics.parameter_norm);
      });
}

}  // namespace dssync::python
