#include "dssync/monitor/testing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "dssync/base/index.h"
#include "dssync/planner/planner.h"
#include "dssync/topology/routes.h"
#include "dssync/topology/testing.h"

namespace dssync::testing {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Something that is transferred, at a rate that others share.
struct Flow {
  LinkLoads bytes;
  double weight = 1;
  double left = 1;  // part
  double rate = 0;  // parts per second
};

// All rates grow in proportion to the weights until a link is full; those on it stay, the others grow on.
void share_links(std::vector<Flow*> flows, const Topology& network) {
  std::vector<double> left;
  for (const Link& link : network.links()) left.push_back(link.capacity.bytes_per_second);
  while (!flows.empty()) {
    std::vector<double> wanted(left.size(), 0);
    for (const Flow* flow : flows) {
      for (const auto& [link, bytes] : flow->bytes) wanted[index(link)] += bytes * flow->weight;
    }
    std::size_t full = 0;
    double level = kNever;
    for (std::size_t link = 0; link < left.size(); ++link) {
      if (wanted[link] > 0 && left[link] / wanted[link] < level) {
        level = left[link] / wanted[link];
        full = link;
      }
    }
    const auto stays = [full](const Flow* flow) {
      return std::none_of(flow->bytes.begin(), flow->bytes.end(),
                          [full](const auto& load) { return index(load.first) == full; });
    };
    const auto frozen = std::partition(flows.begin(), flows.end(), stays);
    for (auto flow = frozen; flow != flows.end(); ++flow) {
      (*flow)->rate = level * (*flow)->weight;
      for (const auto& [link, bytes] : (*flow)->bytes) {
        left[index(link)] = std::max(1e-9, left[index(link)] - bytes * (*flow)->rate);
      }
    }
    flows.erase(frozen, flows.end());
  }
}

struct Operation {
  int stage = 0;
  int piece = 0;
  Flow flow;
  double delay = 0;             // after the transfer
  double ends = kNever;         // once the transfer is done
  std::vector<int> waits_for;   // by member: what must happen before it starts
  std::vector<double> started;  // by member
  std::size_t missing = 0;      // members
  bool done = false;
};

}  // namespace

// The operations of one iteration, event by event.
class IterationSimulation {
 public:
  IterationSimulation(TrainingSimulation& run, std::int64_t iteration)
      : run_(run), table_(*run.table_), seconds_(index(table_.size())) {
    for (int stage = 0; stage < table_.size(); ++stage) {
      seconds_[index(stage)].assign(table_.at(stage).members.size(), 0);
      const double share = table_.share_of(index(table_.at(stage).round), iteration);
      if (share > 0) add_operations(stage, share * run.bytes_);
    }
    for (std::size_t rank = 0; rank < run.compute_.size(); ++rank) {
      compute_.push_back(run.compute_[rank] * std::exp(0.05 * run.normal()));
      ready_.push_back(run.free_at_[rank] + compute_.back());
    }
    ends_ = ready_;
  }

  void simulate() {
    std::vector<bool> arrived(ready_.size(), false);
    double time = *std::min_element(ready_.begin(), ready_.end());
    while (true) {
      for (std::size_t rank = 0; rank < ready_.size(); ++rank) {
        if (!arrived[rank] && ready_[rank] <= time) {
          arrived[rank] = true;
          for (Operation& operation : operations_) release(operation, static_cast<Rank>(rank), time);
        }
      }
      for (Operation& operation : operations_) {
        if (!operation.done && operation.ends <= time) finish(operation, time);
      }
      if (finished_ == operations_.size() && *std::max_element(ready_.begin(), ready_.end()) <= time) break;
      time = step(time, arrived);
    }
  }

  void report(std::int64_t iteration, SampleBatch& samples) {
    std::vector<bool> silent;
    const std::vector<double> bytes = bytes_by_link(iteration);
    for (std::size_t rank = 0; rank < ready_.size(); ++rank) {
      silent.push_back(run_.loses());
      if (silent.back()) continue;
      samples.workers.push_back(
          {iteration, static_cast<Rank>(rank), compute_[rank], run_.noisy(ends_[rank] - ready_[rank])});
      count(static_cast<Rank>(rank), bytes, samples.workers.back());
    }
    for (const Operation& operation : operations_) {
      if (operation.piece != 0) continue;
      const TableStage& stage = table_.at(operation.stage);
      for (std::size_t i = 0; i < stage.members.size(); ++i) {
        const Rank rank = stage.stage.members[i];
        const double volume = run_.bytes_ * table_.share_of(index(stage.round), iteration);
        if (silent[index(rank)] || run_.loses()) continue;
        samples.stages.push_back({iteration, operation.stage, rank, stage.members[i].sent * volume,
                                  run_.noisy(seconds_[index(operation.stage)][i])});
      }
    }
    run_.free_at_ = ends_;
  }

  double end() const { return *std::max_element(ends_.begin(), ends_.end()); }

 private:
  std::vector<double> bytes_by_link(std::int64_t iteration) const {
    std::vector<double> bytes(run_.network().links().size(), 0);
    for (std::size_t round = 0; round < table_.rounds(); ++round) {
      table_.add_loads(round, run_.bytes_ * table_.share_of(round, iteration), bytes);
    }
    return bytes;
  }

  void count(Rank rank, const std::vector<double>& bytes, WorkerSample& sample) {
    if (run_.others_.empty()) return;
    constexpr double kHeaders = 1.03;
    const auto [out, in] = table_.cable_of(rank);
    sample.counted_seconds = ends_[index(rank)] - run_.free_at_[index(rank)];
    const auto counted = [&](LinkId link) {
      return run_.noisy(kHeaders * bytes[index(link)] + run_.others_[index(link)] * sample.counted_seconds);
    };
    sample.counted_out = counted(out);
    sample.counted_in = counted(in);
  }

  void add_operations(int number, double volume) {
    const TableStage& stage = table_.at(number);
    const bool pipelined =
        stage.phase > 0 || (index(number) + 1 < table_.stages().size() && table_.at(number + 1).round == stage.round &&
                            table_.at(number + 1).group == stage.group);
    const int pieces = pipelined ? run_.options_.pieces : 1;
    for (int piece = 0; piece < pieces; ++piece) {
      Operation operation;
      operation.stage = number;
      operation.piece = piece;
      double most = 1;
      for (const auto& [link, load] : stage.loads) {
        operation.flow.bytes.emplace_back(link, load * volume / pieces);
        most = std::max(most, operation.flow.bytes.back().second);
      }
      operation.flow.weight = std::exp(run_.options_.unfairness * run_.normal()) / most;
      operation.delay = stage.latency_seconds + run_.options_.operation_seconds * (0.5 + std::abs(run_.normal()));
      operation.missing = stage.members.size();
      operation.started.resize(stage.members.size(), 0);
      for (const Rank rank : stage.stage.members) operation.waits_for.push_back(1 + (piece > 0) + before(stage, rank));
      operations_.push_back(std::move(operation));
    }
  }

  // Stages of the phase before in which the worker takes part.
  int before(const TableStage& stage, Rank rank) const {
    int count = 0;
    for (const TableStage& other : table_.stages()) {
      if (other.round == stage.round && other.group == stage.group && other.phase == stage.phase - 1 &&
          has(other, rank)) {
        ++count;
      }
    }
    return count;
  }

  static bool has(const TableStage& stage, Rank rank) {
    return std::find(stage.stage.members.begin(), stage.stage.members.end(), rank) != stage.stage.members.end();
  }

  // One of the things that a member waited for has happened.
  void release(Operation& operation, Rank rank, double time) {
    const std::vector<Rank>& members = table_.at(operation.stage).stage.members;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] != rank || --operation.waits_for[i] > 0) continue;
      operation.started[i] = time;
      --operation.missing;
      if (operation.missing == 0 && operation.flow.bytes.empty()) operation.ends = time + operation.delay;
    }
  }

  void finish(Operation& operation, double time) {
    operation.done = true;
    ++finished_;
    const TableStage& stage = table_.at(operation.stage);
    for (std::size_t i = 0; i < stage.members.size(); ++i) {
      const Rank rank = stage.stage.members[i];
      seconds_[index(operation.stage)][i] += time - operation.started[i];
      ends_[index(rank)] = std::max(ends_[index(rank)], time);
      for (Operation& next : operations_) {
        const TableStage& other = table_.at(next.stage);
        const bool same = next.stage == operation.stage && next.piece == operation.piece + 1;
        const bool follows = other.round == stage.round && other.group == stage.group &&
                             other.phase == stage.phase + 1 && next.piece == operation.piece;
        if (same || follows) release(next, rank, time);
      }
    }
  }

  // To the next event.
  double step(double time, const std::vector<bool>& arrived) {
    std::vector<Flow*> flows;
    double next = run_.changes_.size() > 1 ? run_.changes_[1].first : kNever;
    for (std::size_t rank = 0; rank < ready_.size(); ++rank) {
      if (!arrived[rank]) next = std::min(next, ready_[rank]);
    }
    for (Operation& operation : operations_) {
      if (operation.done || operation.missing > 0) continue;
      if (operation.ends < kNever) {
        next = std::min(next, operation.ends);
      } else {
        flows.push_back(&operation.flow);
      }
    }
    share_links(flows, run_.network());
    for (const Flow* flow : flows) next = std::min(next, time + flow->left / flow->rate);
    for (Operation& operation : operations_) {
      if (operation.done || operation.missing > 0 || operation.ends < kNever) continue;
      operation.flow.left -= (next - time) * operation.flow.rate;
      if (operation.flow.left < 1e-9) operation.ends = next + operation.delay;
    }
    run_.advance(next);
    return next;
  }

  TrainingSimulation& run_;
  const StageTable& table_;
  std::vector<Operation> operations_;
  std::size_t finished_ = 0;
  std::vector<std::vector<double>> seconds_;    // by stage and member
  std::vector<double> compute_, ready_, ends_;  // by rank
};

TrainingSimulation::TrainingSimulation(const Topology& truth, double bytes, const SimulationOptions& options)
    : bytes_(bytes), options_(options), random_(options.seed) {
  changes_.emplace_back(0, truth);
  compute_.assign(index(truth.workers()), options.compute_seconds);
  free_at_.assign(index(truth.workers()), 0);
}

void TrainingSimulation::change_network(double time, const Topology& truth) {
  changes_.emplace_back(time, truth);
  advance(now_);
}

void TrainingSimulation::advance(double time) {
  while (changes_.size() > 1 && changes_[1].first <= time) changes_.pop_front();
}

double TrainingSimulation::run(std::int64_t iteration, SampleBatch& samples) {
  IterationSimulation simulation(*this, iteration);
  simulation.simulate();
  simulation.report(iteration, samples);
  const double before = now_;
  now_ = std::max(now_, simulation.end());
  return now_ - before;
}

double TrainingSimulation::run(const Probe& probe, std::int64_t iteration, SampleBatch& samples) {
  std::vector<Flow> flows;
  for (const ProbeTransfer& transfer : probe.transfers) {
    Flow flow;
    const Topology& topology = network();
    for (const LinkId link : route(topology, topology.host_at(topology.position_of(transfer.from)),
                                   topology.host_at(topology.position_of(transfer.to)))) {
      flow.bytes.emplace_back(link, transfer.bytes);
    }
    flow.weight = 1 / transfer.bytes;
    flows.push_back(flow);
  }
  std::vector<Flow*> all;
  for (Flow& flow : flows) all.push_back(&flow);
  share_links(all, network());
  double longest = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const ProbeTransfer& transfer = probe.transfers[i];
    double all_turns = 0;
    for (int turn = 0; turn < probe.turns; ++turn) {
      double seconds = options_.operation_seconds + 1 / flows[i].rate;
      if (options_.drag > 1) seconds *= 1 + (options_.drag - 1) * static_cast<double>(random_()) / 4294967296.0;
      all_turns += seconds;
      samples.probes.push_back({iteration, transfer.from, transfer.to, transfer.bytes, noisy(seconds), turn});
      samples.probes.push_back({iteration, transfer.from, transfer.to, transfer.bytes, noisy(2 * seconds), turn});
    }
    longest = std::max(longest, all_turns);
  }
  const double wait = std::max(0.0, longest - *std::min_element(compute_.begin(), compute_.end()));
  for (double& time : free_at_) time = std::max(time, now_) + wait;
  now_ += wait;
  advance(now_);
  return longest;
}

double TrainingSimulation::normal() {
  const auto uniform = [this] { return (static_cast<double>(random_()) + 0.5) / 4294967296.0; };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

// As the difference of two readings of a clock that is far off.
double TrainingSimulation::noisy(double seconds) {
  const double start = 1e6 * static_cast<double>(random_() % 1000);
  return (start + seconds * std::exp(options_.noise * normal())) - start;
}

bool TrainingSimulation::loses() { return static_cast<double>(random_()) < options_.lost * 4294967296.0; }

AdaptiveRun::AdaptiveRun(const Topology& nominal, const Options& options)
    : simulation(nominal, options.bytes, options.simulation),
      monitor(nominal, options.monitor),
      policy([options](const Topology& network) { return Planner(network, options.bytes).best(options.disagreement); },
             options.bytes, options.policy),
      options_(options) {
  const Plan first = *Planner(nominal, options.bytes).best(options.disagreement);
  policy.adopt(0, first, std::make_shared<StageTable>(first.rounds, first.shards, nominal, options.bytes));
  monitor.adopt(0, policy.table());
  simulation.adopt(policy.table());
}

double AdaptiveRun::iterations(int count) {
  const double start = simulation.now();
  for (int i = 0; i < count; ++i) {
    if (pending_ && iteration >= switch_at_) {
      policy.adopt(iteration, pending_->plan, pending_->table);
      monitor.adopt(iteration, policy.table());
      simulation.adopt(policy.table());
      pending_.reset();
    }
    simulation.run(iteration++, batch_);
    if (iteration < batch_end_) continue;
    finish_batch();
    if (options_.probes && options_.adapts) probe();
    batch_end_ = iteration + static_cast<std::int64_t>(pacer_.batch_size(monitor, iteration, iteration_seconds()));
  }
  return (simulation.now() - start) / count;
}

void AdaptiveRun::run_until(double time) {
  while (simulation.now() < time) iterations(1);
}

void AdaptiveRun::finish_batch() {
  for (const SampleBatch& part : by_iteration(batch_)) {
    monitor.add(part);
    policy.remember(monitor);
  }
  pacer_.add(batch_.probes, iteration_seconds());
  batch_ = {};
  if (verbose) show();
  if (!options_.adapts) return;
  if (std::optional<PlanChange> change = policy.consider(monitor)) {
    if (verbose) std::printf("%4lld change: %s\n", static_cast<long long>(iteration), change->explanation.c_str());
    changes.push_back(*change);
    pending_ = std::move(change);
    switch_at_ = iteration + options_.switch_delay;
  }
}

void AdaptiveRun::probe() {
  const Probe probe = pacer_.next_probe(monitor, iteration, iteration_seconds(), policy.needs_probe(monitor));
  if (probe.transfers.empty()) return;
  if (verbose) {
    std::printf("%4lld probe %zu transfers, %.3f s, every %lld\n", static_cast<long long>(iteration),
                probe.transfers.size(), probe.seconds, static_cast<long long>(probe.interval));
  }
  probe_seconds += simulation.run(probe, iteration, batch_);
}

void AdaptiveRun::show() const {
  std::printf("%4lld t=%.1f iteration %.3f compute %.3f\n", static_cast<long long>(iteration), simulation.now(),
              iteration_seconds(), monitor.compute_seconds());
  for (const LinkFinding& finding : monitor.findings()) {
    std::printf("       %s %.1f -> %.1f: %s\n", monitor.nominal().link(finding.link).name.c_str(),
                finding.from.bytes_per_second / 125e3, finding.to.bytes_per_second / 125e3, finding.reason.c_str());
  }
}

double AdaptiveRun::fresh_seconds(const Topology& network, const Options& options) {
  Options fresh = options;
  fresh.adapts = false;
  return AdaptiveRun(network, fresh).iterations(20);
}

double AdaptiveRun::megabits(const std::string& link) const {
  for (std::size_t i = 0; i < monitor.estimates().size(); ++i) {
    if (monitor.nominal().links()[i].name == link) return monitor.estimates()[i].capacity.bytes_per_second / 125e3;
  }
  return 0;
}

std::vector<std::string> AdaptiveRun::slow_links() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < monitor.estimates().size(); ++i) {
    if (monitor.estimates()[i].slow_since >= 0) names.push_back(monitor.nominal().links()[i].name);
  }
  return names;
}

void contend(AdaptiveRun& run, const std::vector<std::string>& names, double megabits) {
  Topology network = run.monitor.nominal();
  for (const std::string& name : names) network = with_links(network, name, megabits);
  std::vector<double> others;
  for (std::size_t link = 0; link < network.links().size(); ++link) {
    others.push_back((run.monitor.nominal().links()[link].capacity.bytes_per_second -
                      network.links()[link].capacity.bytes_per_second));
  }
  run.simulation.change_network(run.simulation.now(), network);
  run.simulation.set_others(std::move(others));
}

Topology two_racks(double core_megabits) { return racks(2, 4, 25e6, core_megabits * 125e3); }

Topology with_links(const Topology& topology, const std::string& name, double megabits) {
  std::vector<Bandwidth> capacities;
  for (const Link& link : topology.links()) {
    capacities.push_back(link.name.rfind(name, 0) == 0 ? Bandwidth{megabits * 125e3} : link.capacity);
  }
  return topology.with_capacities(capacities);
}

}  // namespace dssync::testing
