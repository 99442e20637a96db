#include "dssync/sync/methods/averaged_sets.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include <ATen/ATen.h>

namespace dssync {
namespace {

// Squares that PyTorch's optimizers keep, and take the root of.
bool is_never_negative(const std::string& state) {
  constexpr std::array kNames = {"exp_avg_sq", "max_exp_avg_sq", "square_avg", "sum", "exp_inf"};
  return std::find(kNames.begin(), kNames.end(), state) != kNames.end();
}

std::int64_t end_of(const Flat& flat, std::size_t part) {
  return part + 1 < flat.parts.size() ? flat.parts[part + 1].offset : flat.vector.numel();
}

// Neighbouring tensors of one bucket are one stretch. `bucket_of`: by the number of a tensor.
std::vector<std::vector<FlatSlice>> stretches_by_bucket(const std::vector<Flat>& flats, std::size_t buckets,
                                                        const std::vector<std::size_t>& bucket_of) {
  std::vector<std::vector<FlatSlice>> result(buckets);
  for (std::size_t flat = 0; flat < flats.size(); ++flat) {
    for (std::size_t part = 0; part < flats[flat].parts.size(); ++part) {
      const auto& [tensor, begin] = flats[flat].parts[part];
      std::vector<FlatSlice>& stretches = result[bucket_of[tensor]];
      if (stretches.empty() || stretches.back().flat != flat || stretches.back().end != begin) {
        stretches.push_back({flat, begin, begin});
      }
      stretches.back().end = end_of(flats[flat], part);
    }
  }
  return result;
}

}  // namespace

AveragedSets::AveragedSets(World& world, const Replica& replica, TensorSet& parameters, std::vector<Bucket> buckets,
                           const SyncOptions& options, MakeRule make_rule)
    : world_(world),
      replica_(replica),
      buckets_(std::move(buckets)),
      options_(options),
      make_rule_(std::move(make_rule)),
      bucket_of_(replica.parameters.size()) {
  std::vector<std::size_t> all;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (const std::size_t parameter : buckets_[bucket].parameters) bucket_of_[parameter] = bucket;
  }
  for (std::size_t parameter = 0; parameter < replica.parameters.size(); ++parameter) all.push_back(parameter);
  add_set(parameters, all, 1, false);
}

// `parameters`: that the tensors belong to.
void AveragedSets::add_set(TensorSet& tensors, const std::vector<std::size_t>& parameters, int period,
                           bool never_negative) {
  std::vector<std::size_t> bucket_of;
  for (const std::size_t parameter : parameters) bucket_of.push_back(bucket_of_[parameter]);
  sets_.push_back({&tensors, make_rule_(tensors.flats(), never_negative), period,
                   stretches_by_bucket(tensors.flats(), buckets_.size(), bucket_of),
                   std::vector<std::vector<FlatSlice>>(buckets_.size()),
                   std::vector<std::vector<FlatSlice>>(buckets_.size())});
}

bool AveragedSets::looks_for_state(std::int64_t iteration) const {
  return options_.averages_state() && replica_.optimizer_state && iteration >= next_look_;
}

void AveragedSets::adopt_state(std::int64_t iteration) {
  if (!looks_for_state(iteration)) return;
  next_look_ = iteration + look_again_after_;
  look_again_after_ *= 2;
  std::map<std::string, std::size_t> parameter_of;  // by name
  for (std::size_t index = 0; index < replica_.parameters.size(); ++index) {
    parameter_of[replica_.parameters[index].name] = index;
  }
  std::vector<std::string> lines;
  std::map<std::string, std::pair<std::string, NamedTensor>> by_line;  // its kind, and the tensor
  for (const OptimizerState& state : replica_.optimizer_state()) {
    const std::vector<std::string> tensors = describe(state.tensors);
    for (std::size_t index = 0; index < tensors.size(); ++index) {
      lines.push_back(state.name + " of " + tensors[index]);
      by_line[lines.back()] = {state.name, state.tensors[index]};
    }
  }
  std::set<std::string> kinds;
  std::map<std::string, std::vector<std::pair<std::size_t, NamedTensor>>> fresh;  // by kind
  for (const std::string& line : world_.common("optimizer state", lines)) {
    const auto& [kind, tensor] = by_line.at(line);
    kinds.insert(kind);
    if (adopted_.insert(line).second) fresh[kind].emplace_back(parameter_of.at(tensor.name), tensor);
  }
  const bool is_complete = !kinds.empty() && adopted_.size() == kinds.size() * replica_.parameters.size();
  if (is_complete) next_look_ = std::numeric_limits<std::int64_t>::max();
  for (auto& [kind, tensors] : fresh) add_state(kind, std::move(tensors));
}

// In the order of the parameters, so that a bucket's tensors are neighbours.
void AveragedSets::add_state(const std::string& kind, std::vector<std::pair<std::size_t, NamedTensor>> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::size_t> parameters;
  std::vector<NamedTensor> named;
  for (auto& [parameter, tensor] : tensors) {
    parameters.push_back(parameter);
    named.push_back(std::move(tensor));
  }
  TensorSet& added = *state_.emplace_back(std::make_unique<TensorSet>(std::move(named), replica_.storage));
  add_set(added, parameters, options_.state_parts(), is_never_negative(kind));
}

void AveragedSets::gather(std::size_t bucket) {
  for (Set& set : sets_) {
    for (const FlatSlice& stretch : set.stretches[bucket]) set.tensors->gather(stretch);
  }
}

std::vector<AveragingJob> AveragedSets::prepare(std::size_t bucket, const ScheduleProgram& schedule,
                                                std::int64_t iteration,
                                                const std::function<Turnout(std::size_t)>& turnout) {
  // By round, type and device; parameters first.
  std::map<std::tuple<std::size_t, at::ScalarType, std::string, bool>, AveragingJob> jobs;
  for (Set& set : sets_) {
    const bool is_parameters = &set == &sets_.front();
    const bool is_state = reference_ != nullptr && !is_parameters;
    std::vector<FlatSlice>& slices = set.prepared[bucket];
    slices.clear();
    set.common[bucket].clear();
    std::vector<std::size_t> rounds;
    for (const FlatSlice& stretch : set.stretches[bucket]) {
      const std::int64_t size = set.tensors->flats()[stretch.flat].vector.numel();
      for (const auto& [begin, end, round] : schedule.slices(size, iteration, set.period)) {
        const FlatSlice slice{stretch.flat, std::max(begin, stretch.begin), std::min(end, stretch.end)};
        if (slice.begin >= slice.end || turnout(round) == Turnout::kNobody) continue;
        slices.push_back(slice);
        if (turnout(round) == Turnout::kEveryone) set.common[bucket].push_back(slice);
        rounds.push_back(round);
      }
    }
    set.rule->prepare(slices);
    if (reference_ != nullptr && is_parameters) reference_->subtract_from(set.rule->averaged(), slices);
    for (std::size_t index = 0; index < slices.size(); ++index) {
      const at::Tensor values = stretch_of(set.rule->averaged(), slices[index]);
      AveragingJob& job = jobs[{rounds[index], values.scalar_type(), values.device().str(), is_state}];
      job.round = rounds[index];
      job.is_state = is_state;
      job.slices.push_back(values);
    }
  }
  std::vector<AveragingJob> result;
  for (auto& [key, job] : jobs) result.push_back(std::move(job));
  return result;
}

void AveragedSets::complete(std::size_t bucket) {
  if (reference_ == nullptr) return;
  const Set& parameters = sets_.front();
  reference_->add_to(parameters.rule->averaged(), parameters.prepared[bucket]);
  reference_->move_to(parameters.rule->averaged(), parameters.common[bucket]);
}

void AveragedSets::take_over(std::size_t bucket, const OnMove& on_move) {
  const Set& parameters = sets_.front();
  for (const FlatSlice& slice : on_move ? parameters.prepared[bucket] : std::vector<FlatSlice>()) {
    if (const std::optional<TakeOver::Move> move = parameters.rule->move_of(slice)) on_move(slice, *move);
  }
  for (Set& set : sets_) {
    set.rule->apply(set.prepared[bucket]);
    for (const FlatSlice& stretch : set.stretches[bucket]) set.tensors->scatter(stretch);
  }
}

void AveragedSets::gather() {
  for (Set& set : sets_) set.tensors->gather();
}

}  // namespace dssync
