// What a method may be told. Each option is described once, in sync_options(): what it is called in a log and on the
// command line, which methods look at it, how its text is read. Flags, logs, checkpoints, what workers compare before
// they start, and the Python package follow from that list. Plain values; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dssync/method/method.h"
#include "dssync/method/overlap.h"
#include "dssync/planner/exact_inside.h"
#include "dssync/planner/planner.h"

namespace dssync {

// What ds-sync does with the optimizer's state (momentum, Adam's moments).
enum class StateTreatment {
  kAuto,      // kInferred for Adam and AdamW, kRotating for others
  kInferred,  // of Adam: how averages move a worker's parameters tells how its momentum differs from the others'
  kLocal,     // every worker keeps its own
  kAveraged,  // averaged with the parameters, in the same groups
  kRotating,  // one part of `state_period` in turn, each throughout a cycle of the schedule
};

// "auto", "inferred", "local", "averaged", "rotating"; the other way as for methods.
std::string name_of(StateTreatment treatment);
StateTreatment state_treatment_from_name(const std::string& name);

// What kAuto stands for, with an optimizer that is Adam or AdamW or is not; others are what they are. Throws InputError
// where momentum is to be inferred from another optimizer's steps.
StateTreatment resolve(StateTreatment asked, bool is_adam);

struct SyncOptions {
  Method method = Method::kDsSync;
  // ds-sync. Without a plan of its own it makes one from the topology, the model's bytes and the three lines below.
  std::optional<Plan> plan{};
  double disagreement = 0.5;
  int group_limit = 0;
  bool published = false;  // the paper's schedule instead of the fastest one
  // Gradients are averaged inside of these regions in every iteration; each is one replica of the plan.
  ExactInside exact_inside{};
  // How averages of parameters travel (ds-sync, local-sgd), or gradients (bsp-ring, bsp-hierarchical, ps); nothing: as
  // the method does by itself. Of a plan that is given, the plan says so.
  std::optional<CodecChoice> codec{};
  double codec_rate = kCodecBytesPerSecond;  // float32 bytes that a worker encodes in a second, or decodes
  Seconds compute{0};  // of an iteration, where it is known beforehand: what exact regions hide behind
  bool adapt = false;  // watch the links while training, and plan again where that pays (docs/adaptation.md)
  bool steer = false;  // with adapt: `disagreement` is the most, less is allowed while steps are large
  Overlap overlap = Overlap::kAuto;
  StateTreatment state = StateTreatment::kAuto;
  int state_period = 8;          // of kRotating: parts
  bool noise_correction = true;  // Adam's steps are made as long as everyone's mean gradient would make them
  int warmup_iterations = 0;     // global averages before the schedule starts
  // bsp-ring, bsp-hierarchical, ps, and ds-sync inside exact regions
  std::int64_t bucket_bytes = 1 << 20;
  // local-sgd: a global average every so many iterations
  int period = 8;
  // ssp: how many iterations the fastest worker may be ahead of the slowest
  int staleness = 3;

  // What is done about `codec`: gradients stay as they are where the choice is left to the method.
  CodecChoice codec_choice() const;

  // What really happens to the optimizer's state, and in how many parts: local-sgd leaves it alone.
  StateTreatment state_treatment() const { return method == Method::kDsSync ? state : StateTreatment::kLocal; }
  // Whether it travels with the parameters. REQUIRES: state is not kAuto.
  bool averages_state() const {
    return state_treatment() == StateTreatment::kAveraged || state_treatment() == StateTreatment::kRotating;
  }
  int state_parts() const { return state_treatment() == StateTreatment::kRotating ? state_period : 1; }
};

using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

// "on", "8", "0.5", "rotating".
std::string text_of(const OptionValue& value);

// One option of SyncOptions.
struct SyncOption {
  std::string name;  // in logs and checkpoints, and in Python: "state_period"
  std::vector<Method> methods;
  std::function<OptionValue(const SyncOptions&)> get;
  // Takes the value from its text. Throws InputError that says what was expected and what was found.
  std::function<void(SyncOptions&, const std::string& text)> set;
  bool plans = false;  // only matters to a ds-sync that makes its own plan

  struct Flag {
    std::string name;                  // "--state-period"; empty where there is none
    std::string value{};               // what stands for the value in the help: "PARTS"; empty for a switch
    std::string help{};                // without the names of the methods
    std::vector<std::string> names{};  // that the value can have; empty: others
    bool trains = false;               // of `dssync train` alone
  } flag{};
  // The switch that turns it off, or sets it to none.
  Flag opposite{};

  bool concerns(Method method) const;
};

// All of them, in the order in which people should read them.
const std::vector<SyncOption>& sync_options();

// Throws InputError that names the option where there is none of this name, or the text is no value of it.
void set_option(SyncOptions& options, const std::string& name, const std::string& text);

// Those that the method looks at, with their values.
std::vector<std::pair<std::string, OptionValue>> values_of(const SyncOptions& options);

// Throws InputError where a value makes no sense, or options do not go together.
void check(const SyncOptions& options);

}  // namespace dssync
