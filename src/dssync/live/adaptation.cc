#include "dssync/live/adaptation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/live/machines.h"
#include "dssync/planner/planner.h"

namespace dssync {
namespace {

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

// In which at least one of them was under way.
double union_of(std::vector<std::pair<Clock::time_point, Clock::time_point>> spans) {
  std::sort(spans.begin(), spans.end());
  double seconds = 0;
  Clock::time_point covered = Clock::time_point::min();
  for (const auto& [start, end] : spans) {
    if (end <= covered) continue;
    seconds += seconds_between(std::max(start, covered), end);
    covered = end;
  }
  return seconds;
}

void add_samples(const IterationRecord& record, Rank rank, SampleBatch& batch) {
  std::map<int, std::vector<std::pair<Clock::time_point, Clock::time_point>>> spans;
  std::vector<std::pair<Clock::time_point, Clock::time_point>> all;
  std::map<int, double> bytes;
  for (const StageUse& use : record.uses) {
    spans[use.stage].emplace_back(use.start, use.end);
    all.emplace_back(use.start, use.end);
    bytes[use.stage] += static_cast<double>(use.bytes);
  }
  for (const auto& [stage, uses] : spans) {
    batch.stages.push_back({record.iteration, stage, rank, bytes[stage], union_of(uses)});
  }
  batch.workers.push_back({record.iteration, rank, record.compute_seconds, union_of(all), record.counted_seconds,
                           record.counted_out, record.counted_in});
}

// What a worker tells the others: numbers in a row, each list after its length.
std::vector<double> encoded(const SampleBatch& batch) {
  std::vector<double> row;
  const auto list = [&row](const auto& samples, auto fields) {
    row.push_back(static_cast<double>(samples.size()));
    for (const auto& sample : samples) {
      for (const double field : fields(sample)) row.push_back(field);
    }
  };
  list(batch.stages, [](const StageSample& sample) {
    return std::array{static_cast<double>(sample.iteration), static_cast<double>(sample.stage), sample.bytes,
                      sample.seconds};
  });
  list(batch.workers, [](const WorkerSample& sample) {
    return std::array{static_cast<double>(sample.iteration),
                      sample.compute_seconds,
                      sample.sync_seconds,
                      sample.counted_seconds,
                      sample.counted_out,
                      sample.counted_in};
  });
  list(batch.probes, [](const ProbeSample& sample) {
    return std::array{static_cast<double>(sample.iteration), static_cast<double>(sample.to), sample.bytes,
                      sample.seconds, static_cast<double>(sample.turn)};
  });
  return row;
}

class Reader {
 public:
  explicit Reader(const std::vector<double>& row) : row_(row) {}
  double next() { return row_.at(place_++); }
  std::int64_t whole() { return static_cast<std::int64_t>(next()); }

 private:
  const std::vector<double>& row_;
  std::size_t place_ = 0;
};

void decode(Reader& row, Rank rank, SampleBatch& batch) {
  for (std::int64_t count = row.whole(); count > 0; --count) {
    const std::int64_t iteration = row.whole();
    const int stage = static_cast<int>(row.whole());
    const double bytes = row.next();
    batch.stages.push_back({iteration, stage, rank, bytes, row.next()});
  }
  for (std::int64_t count = row.whole(); count > 0; --count) {
    WorkerSample sample{.iteration = row.whole(), .rank = rank};
    for (double* field : {&sample.compute_seconds, &sample.sync_seconds, &sample.counted_seconds, &sample.counted_out,
                          &sample.counted_in}) {
      *field = row.next();
    }
    batch.workers.push_back(sample);
  }
  for (std::int64_t count = row.whole(); count > 0; --count) {
    const std::int64_t iteration = row.whole();
    const Rank to = static_cast<Rank>(row.whole());
    const double bytes = row.next();
    const double seconds = row.next();
    batch.probes.push_back({iteration, rank, to, bytes, seconds, static_cast<int>(row.whole())});
  }
}

// The same number for the same text, and hardly for another one.
double hash_of(const std::string& text) {
  constexpr std::size_t kExact = std::size_t{1} << 52;  // numbers below are doubles without rounding
  return static_cast<double>(std::hash<std::string>()(text) % kExact);
}

// A number by which workers notice that they decided differently: on the plan, or on the network to lower it on.
double fingerprint(const PlanChange& change) {
  std::string text = std::to_string(change.plan.shards);
  for (const Round& round : change.plan.rounds) text += fmt::format(" {}", round.groups);
  text += fmt::format(" {}", name_of(change.plan.codecs));
  for (const Link& link : change.network.links()) text += fmt::format(" {}", link.capacity.bytes_per_second);
  return hash_of(text);
}

DisagreementOptions steering(const AdaptationOptions& options, double missed) {
  DisagreementOptions result;
  result.permitted = options.disagreement;
  result.missed = missed;
  return result;
}

PolicyOptions policy_options(const AdaptationOptions& options) {
  PolicyOptions result;
  result.overlap = options.overlap;
  return result;
}

}  // namespace

double Adaptation::first_limit(const AdaptationOptions& options) {
  return options.steer ? DisagreementControl(steering(options, 0)).limit() : options.disagreement;
}

Adaptation::Adaptation(World& world, const Topology& nominal, const AdaptationOptions& options,
                       std::shared_ptr<const PlanProgram> first)
    : world_(world),
      options_(options),
      interface_(world.address()),
      side_(world, options.device),
      monitor_(nominal),
      policy_([this](const Topology& network) { return plan_for(network); }, options.bytes, policy_options(options)),
      planned_limit_(first_limit(options)),
      program_(std::move(first)) {
  if (options_.steer) control_.emplace(steering(options_, options_.missed));
  policy_.adopt(0, program_->plan, program_->table);
  monitor_.adopt(0, policy_.table());
  counts_ = counts_one_host_each();
  expect_gradients(nominal);
  thread_ = std::thread([this] { run(); });
}

Adaptation::~Adaptation() {
  // Where an exception ends the training, the others wait for iterations that will never come. An exception of Python
  // shows only in an iteration that was not finished.
  bool failed = std::uncaught_exceptions() > exceptions_;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    failed = failed || begun_ > handed_in_;
  }
  changed_.notify_all();
  if (failed) side_.give_up();
  thread_.join();
}

// Does it; where others failed it, throws which, and why.
template <typename Action>
void Adaptation::explained(Action action) {
  try {
    action();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw world_.explain("sharing figures about the network", world_.everyone(), error.what());
  }
}

// Whether an interface belongs to one host of the network. Workers on one machine that the network calls several hosts
// would count each other's traffic as that of others.
bool Adaptation::counts_one_host_each() {
  std::vector<std::vector<double>> machines;
  const Machine own = this_machine(world_.address());
  explained([&] { machines = side_.gather({hash_of(own.name + " " + own.address)}); });
  std::map<double, std::pair<LinkId, LinkId>> cables;
  for (Rank rank = 0; rank < world_.size(); ++rank) {
    const auto cable = policy_.table()->cable_of(rank);
    if (cables.try_emplace(machines[static_cast<std::size_t>(rank)].at(0), cable).first->second != cable) return false;
  }
  return true;
}

std::optional<Adaptation::Reading> Adaptation::read_interface() const {
  const std::optional<InterfaceBytes> bytes = counts_ ? interface_.read() : std::nullopt;
  if (!bytes) return std::nullopt;
  return Reading{Clock::now(), *bytes, side_.probed()};
}

// What came and went since the iteration began.
void Adaptation::count(IterationRecord& record) const {
  const std::optional<Reading> end = read_interface();
  if (!at_begin_ || !end) return;
  const auto since = [](auto now, auto before) { return static_cast<double>(now) - static_cast<double>(before); };
  const auto counted = [](double all, double probes, double gradients) {
    return std::max(0.0, all - probes - kFraming * gradients);
  };
  record.counted_seconds = seconds_between(at_begin_->time, end->time);
  record.counted_out = counted(since(end->interface.sent, at_begin_->interface.sent),
                               since(end->probes.sent, at_begin_->probes.sent), gradients_out_);
  record.counted_in = counted(since(end->interface.received, at_begin_->interface.received),
                              since(end->probes.received, at_begin_->probes.received), gradients_in_);
}

void Adaptation::expect_gradients(const Topology& nominal) {
  const Cost inside = inside_cost(options_.replicas, nominal, options_.bytes);
  const auto [out, in] = policy_.table()->cable_of(world_.rank());
  if (out == kNone) return;
  gradients_out_ = inside.links[static_cast<std::size_t>(out)].bytes_per_iteration;
  gradients_in_ = inside.links[static_cast<std::size_t>(in)].bytes_per_iteration;
}

void Adaptation::add(IterationRecord record) {
  count(record);
  {
    const std::lock_guard lock(mutex_);
    handed_in_ = record.iteration;
    records_.push_back(std::move(record));
  }
  changed_.notify_all();
}

std::optional<ProgramChange> Adaptation::change_at(std::int64_t iteration) {
  std::unique_lock lock(mutex_);
  begun_ = iteration;
  changed_.notify_all();
  changed_.wait(lock, [&] { return failure_ || iteration < hold_at_; });
  if (failure_) {
    const std::exception_ptr failure = failure_;
    lock.unlock();
    explained([&] { std::rethrow_exception(failure); });
  }
  at_begin_ = read_interface();
  if (!next_ || iteration < next_->why.iteration) return std::nullopt;
  return std::exchange(next_, std::nullopt);
}

void Adaptation::run() {
  try {
    for (auto batch = await_batch(); !batch.empty(); batch = await_batch()) work_off(batch);
  } catch (...) {
    side_.give_up();  // or others would wait for this worker
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
  changed_.notify_all();
}

// The next iterations; none at the end.
std::vector<IterationRecord> Adaptation::await_batch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return records_.size() >= batch_size_ || stopping_; });
  if (records_.size() < batch_size_) return {};
  const auto end = records_.begin() + static_cast<std::ptrdiff_t>(batch_size_);
  std::vector<IterationRecord> batch(std::make_move_iterator(records_.begin()), std::make_move_iterator(end));
  records_.erase(records_.begin(), end);
  return batch;
}

void Adaptation::work_off(const std::vector<IterationRecord>& batch) {
  SampleBatch own;
  for (const IterationRecord& record : batch) add_samples(record, world_.rank(), own);
  own.probes = std::exchange(probed_, {});
  std::vector<double> row = {batch.back().disagreement, batch.back().parameter_norm, batch.back().learning_rate};
  for (const double number : encoded(own)) row.push_back(number);

  SampleBatch all;
  double disagreement = 0;
  double norm = 0;
  double learning_rate = 0;
  const std::vector<std::vector<double>> rows = exchange(Message::kFigures, std::move(row));
  for (Rank rank = 0; rank < world_.size(); ++rank) {
    Reader reader(rows[static_cast<std::size_t>(rank)]);
    disagreement += reader.next() / world_.size();
    norm += reader.next() / world_.size();
    learning_rate = std::max(learning_rate, reader.next());
    decode(reader, rank, all);
  }

  const std::int64_t last = batch.back().iteration;
  retire_past_plan(last);
  for (const SampleBatch& part : by_iteration(all)) {
    monitor_.add(part);
    policy_.remember(monitor_);
  }
  pacer_.add(all.probes, iteration_seconds());
  if (control_) {
    const double steady = policy_.plan().disagreement();
    control_->update({last, learning_rate, disagreement, norm, steady});
  }
  if (std::optional<PlanChange> why = decide()) prepare(*std::move(why));
  probe(last + 1);
  const std::lock_guard lock(mutex_);
  batch_size_ = pacer_.batch_size(monitor_, last + 1, iteration_seconds());
}

// Everybody has done these iterations: what was in force before a change among them is of the past, unless the change
// may still be taken back. To connect groups again takes longest when the network is at its worst.
void Adaptation::retire_past_plan(std::int64_t last_iteration) {
  if (pending_ && last_iteration >= pending_->why.iteration) {
    policy_.adopt(pending_->why.iteration, pending_->why.plan, pending_->why.table);
    monitor_.adopt(pending_->why.iteration, policy_.table());
    pending_.reset();
  }
  if (pending_ || policy_.on_trial()) return;
  for (const Channel& channel : std::exchange(retired_, {})) world_.release(channel);
}

std::optional<PlanChange> Adaptation::decide() {
  if (pending_) return std::nullopt;
  if (control_ && control_->limit() != planned_limit_) {
    planned_limit_ = control_->limit();
    if (std::optional<PlanChange> change = policy_.plan_anew(monitor_, control_->explanation())) return change;
  }
  return policy_.consider(monitor_);
}

std::optional<Plan> Adaptation::plan_for(const Topology& network) const {
  return Planner(network, options_.bytes, options_.group_limit, options_.replicas, options_.codecs)
      .best(planned_limit_);
}

void Adaptation::prepare(PlanChange why) {
  decision_ = fingerprint(why);
  exchange(Message::kPlan, {});
  ProgramChange change{why, make_plan_program(world_, why.plan, why.table)};
  retire_all_but(*change.program);
  program_ = change.program;
  change.why.iteration = agree_on_iteration();
  pending_ = change;
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(change);
    hold_at_ = kNever;
  }
  changed_.notify_all();
}

// What everybody gave, by rank. Throws where workers, from the same figures, have come to different decisions.
std::vector<std::vector<double>> Adaptation::exchange(Message message, std::vector<double> row) {
  const std::vector<double> head = {static_cast<double>(message), decision_};
  row.insert(row.begin(), head.begin(), head.end());
  std::vector<std::vector<double>> rows = side_.gather(row);
  for (std::size_t rank = 1; rank < rows.size(); ++rank) {
    if (std::equal(rows[rank].begin(), rows[rank].begin() + 2, rows.front().begin())) continue;
    throw AgreementError(
        fmt::format("rank {}: ranks 0 and {} decided differently from the same figures", world_.rank(), rank));
  }
  for (std::vector<double>& other : rows) other.erase(other.begin(), other.begin() + 2);
  return rows;
}

// The first iteration that nobody has begun, nor begins before it has heard of this.
std::int64_t Adaptation::agree_on_iteration() {
  std::int64_t begun = 0;
  {
    const std::lock_guard lock(mutex_);
    begun = begun_;
    hold_at_ = begun + kMargin;
  }
  for (const std::vector<double>& row : exchange(Message::kIteration, {static_cast<double>(begun)})) {
    begun = std::max(begun, static_cast<std::int64_t>(row.at(0)));
  }
  return begun + kMargin;
}

// Links are quiet while workers compute, unless averages overlap that.
void Adaptation::probe(std::int64_t iteration) {
  const Probe probe = pacer_.next_probe(monitor_, iteration, iteration_seconds(), policy_.needs_probe(monitor_));
  if (probe.transfers.empty()) return;
  await_begin_of(iteration + 1);
  probed_ = side_.run(probe, iteration);
}

// Or of a later one, where this one has begun a while ago. Throws where training ends instead.
void Adaptation::await_begin_of(std::int64_t iteration) {
  std::unique_lock lock(mutex_);
  iteration = std::max(iteration, begun_ + 1);
  changed_.wait(lock, [&] { return begun_ >= iteration || stopping_; });
  if (begun_ < iteration) throw Error("training has ended");
}

void Adaptation::retire_all_but(const PlanProgram& program) {
  std::vector<Channel> kept = options_.lasting;
  for (const Chain& chain : program.chains) {
    for (const Channel& channel : channels_of(chain)) kept.push_back(channel);
  }
  for (const Chain& chain : program_->chains) {
    for (const Channel& channel : channels_of(chain)) retired_.push_back(channel);
  }
  std::vector<Channel> result;
  for (const Channel& channel : retired_) {
    if (std::find(kept.begin(), kept.end(), channel) != kept.end()) continue;
    if (std::find(result.begin(), result.end(), channel) == result.end()) result.push_back(channel);
  }
  retired_ = std::move(result);
}

}  // namespace dssync
