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
#include "dssync/base/error.h"
#include "dssync/comm/world.h"
#include "dssync/live/discover_network.h"
#include "dssync/sync/optimizers/adam_table.h"
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
        stepper_(std::in_place, make_synchronizer(*world_, with_passes(replica), topology, options)) {}

  ~Averaging() {
    end();
    const py::gil_scoped_release release;
    world_.reset();
  }

  // Ends the threads of the synchronizer. While Python ends it is too late: whoever then asks for the GIL is ended in
  // the middle of a call, and takes the process along.
  void end() {
    const py::gil_scoped_release release;
    stepper_.reset();
  }

  Averaging(const Averaging&) = delete;
  Averaging& operator=(const Averaging&) = delete;

  // Throws Error after end().
  Stepper& stepper() {
    if (!stepper_) throw Error("the program is ending: nothing is averaged any more");
    return *stepper_;
  }
  PlanOnNetwork plan() { return {stepper().plan(), topology_}; }

  // Gradients are not accumulated over several backward passes: from the next step on they may be averaged while the
  // backward pass runs.
  void expect_one_backward_pass() {
    *has_one_pass_ = true;
    stepper().begin_early();
  }

 private:
  Replica with_passes(Replica replica) const {
    replica.has_one_backward_pass = [has = has_one_pass_] { return *has; };
    return replica;
  }

  const std::shared_ptr<bool> has_one_pass_ = std::make_shared<bool>(false);  // shared with the replica
  std::shared_ptr<World> world_;
  const Topology topology_;
  std::optional<Stepper> stepper_;
};

std::unique_ptr<Averaging> make_averaging(std::shared_ptr<World> world, const Topology& topology,
                                          const Named& parameters, const Named& buffers, const Named& frozen,
                                          std::function<State()> state_of_optimizer, std::function<void()> step,
                                          const std::shared_ptr<AdamTable>& adam, bool normalizes,
                                          const PlanOnNetwork* plan, const std::map<std::string, std::string>& given) {
  SyncOptions options;
  if (plan != nullptr) options.plan = plan->plan;
  for (const auto& [name, text] : given) set_option(options, name, text);
  Replica replica{named_tensors(parameters), named_tensors(buffers), {}};
  if (state_of_optimizer) {
    replica.optimizer_state = [state = std::move(state_of_optimizer)] { return optimizer_states(state()); };
  }
  if (step) {
    replica.step = [all = replica.parameters, step = std::move(step)](const std::vector<std::size_t>& chosen) {
      step_only(all, chosen, step);
    };
  }
  replica.asks_before_step = true;
  replica.frozen = named_tensors(frozen);
  replica.normalizing = adam ? Normalizing::kAdam : normalizes ? Normalizing::kUnknown : Normalizing::kNo;
  if (adam) replica.adam_steps = [adam](const std::vector<std::size_t>& wanted) { return adam->steps(wanted); };
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
                       std::string run, int attempt, int number,
                       const std::optional<std::pair<std::string, std::uint16_t>>& store_place,
                       PythonGroupMaker make_group) {
             std::optional<StorePlace> place;
             if (store_place) place = StorePlace{store_place->first, store_place->second};
             return make_world(std::move(store), std::move(liveness_connection),
                               {.rank = rank,
                                .size = size,
                                .timeout = timeout,
                                .run = {std::move(run), attempt},
                                .number = number,
                                .store_place = std::move(place)},
                               std::move(make_group));
           }),
           py::arg("store"), py::arg("liveness_connection").none(true), py::kw_only(), py::arg("rank"), py::arg("size"),
           py::arg("timeout"), py::arg("run"), py::arg("attempt"), py::arg("number"), py::arg("store_place").none(true),
           py::arg("make_group").none(true), WithoutGil())
      .def_property_readonly("address", &World::address)
      .def("agree", &World::agree, WithoutGil())
      .def("report_failure", &World::report_failure, WithoutGil())
      .def("leave", &World::leave, WithoutGil())
      .def_property_readonly("run", [](const World& world) { return to_text(world.membership().run); })
      .def(
          "discover_network", [](World& world) { return discover_network(world).file; }, WithoutGil());

  py::class_<AdamTable, std::shared_ptr<AdamTable>>(module, "AdamTable")
      .def(py::init<>())
      .def(
          "bind",
          [](AdamTable& table, std::size_t index, const at::Tensor& parameter, const at::Tensor& first_moment,
             const at::Tensor& second_moment, const at::Tensor& count, std::size_t group) {
            table.bind(index, {.parameter = parameter, .first_moment = first_moment, .second_moment = second_moment},
                       count, group);
          },
          py::arg("index"), py::arg("parameter"), py::arg("first_moment"), py::arg("second_moment"), py::arg("count"),
          py::arg("group"))
      .def("clear", &AdamTable::clear)
      .def("set_rates", &AdamTable::set_rates, py::arg("group"), py::arg("learning_rate"), py::arg("beta1"),
           py::arg("beta2"), py::arg("epsilon"));

  py::class_<Averaging>(module, "Averaging")
      .def(py::init(&make_averaging), py::arg("world"), py::arg("topology"), py::arg("parameters"), py::arg("buffers"),
           py::arg("frozen"), py::arg("state_of_optimizer").none(true), py::arg("step").none(true), py::kw_only(),
           py::arg("adam").none(true), py::arg("normalizes"), py::arg("plan").none(true), py::arg("options"))
      .def(
          "before_step", [](Averaging& averaging, bool is_final) { return averaging.stepper().before_step(is_final); },
          py::arg("is_final") = true, WithoutGil())
      .def(
          "await_parameters",
          [](Averaging& averaging, const std::vector<at::Tensor>& parameters) {
            averaging.stepper().await(parameters);
          },
          WithoutGil())
      .def(
          "settle", [](Averaging& averaging) { averaging.stepper().settle(); }, WithoutGil())
      .def(
          "after_step", [](Averaging& averaging) { averaging.stepper().after_step(); }, WithoutGil())
      .def(
          "clip_gradients",
          [](Averaging& averaging, double max_norm) { return averaging.stepper().clip_gradients(max_norm); },
          WithoutGil())
      .def("expect_one_backward_pass", &Averaging::expect_one_backward_pass)
      .def("end", &Averaging::end)
      .def("drop", [](Averaging& averaging) { averaging.stepper().drop_average(); })
      .def(
          "consolidate", [](Averaging& averaging) { return averaging.stepper().consolidate(); }, WithoutGil())
      .def(
          "average_everyone",
          [](Averaging& averaging, const Named& tensors) {
            averaging.stepper().average_everyone(named_tensors(tensors));
          },
          py::arg("tensors"), WithoutGil())
      .def("state", &state_of, WithoutGil())
      .def(
          "load_state",
          [](Averaging& averaging, std::int64_t iteration, const Named& tensors) {
            averaging.stepper().load_state({iteration, named_tensors(tensors)});
          },
          py::arg("iteration"), py::arg("tensors"), WithoutGil())
      .def_property_readonly("overlap", [](Averaging& averaging) { return name_of(averaging.stepper().overlap()); })
      .def_property_readonly("plan", &Averaging::plan)
      .def_property_readonly("iteration", [](Averaging& averaging) { return averaging.stepper().iteration(); })
      .def_property_readonly("plan_changes", [](Averaging& averaging) { return averaging.stepper().plan_changes(); })
      .def_property_readonly("metrics",
                             [](Averaging& averaging) {
                               const SyncMetrics metrics = averaging.stepper().metrics();
                               return std::tuple(metrics.sync_seconds, metrics.bytes_sent, metrics.disagreement,
                                                 metrics.parameter_norm, metrics.noise_ratio);
                             })
      .def_property_readonly("planned_disagreement",
                             [](Averaging& averaging) { return averaging.stepper().planned_disagreement(); })
      .def_property_readonly("noise_treatment",
                             [](Averaging& averaging) { return name_of(averaging.stepper().noise_treatment()); });
}

}  // namespace dssync::python
