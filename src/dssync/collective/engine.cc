#include "dssync/collective/engine.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/planner/cost.h"

namespace dssync {
namespace {

using std::int64_t;

// One step of one average, with its slices in elements.
struct Operation {
  const Step* step = nullptr;
  at::Tensor vector;            // of the whole average
  std::vector<int64_t> bounds;  // ascending
  at::Tensor scratch;           // what must live until the work is done
  Work work;
  Clock::time_point start;
  Clock::time_point end;

  at::Tensor range() const { return vector.narrow(0, bounds.front(), bounds.back() - bounds.front()); }
  int64_t mine() const { return bounds[own() + 1] - bounds[own()]; }
  at::Tensor own_slice() const { return vector.narrow(0, bounds[own()], mine()); }
  std::size_t own() const { return static_cast<std::size_t>(step->index); }
  bool empty() const { return bounds.front() == bounds.back(); }

  std::vector<int64_t> slice_sizes() const {
    std::vector<int64_t> sizes;
    for (std::size_t index = 0; index + 1 < bounds.size(); ++index) sizes.push_back(bounds[index + 1] - bounds[index]);
    return sizes;
  }
};

Operation make_operation(const Step& step, const at::Tensor& vector) {
  Operation operation;
  operation.step = &step;
  operation.vector = vector;
  // Fractions that mean the same place are the same number on every worker, so all round alike.
  for (const double bound : step.bounds) {
    operation.bounds.push_back(std::llround(bound * static_cast<double>(vector.numel())));
  }
  return operation;
}

int64_t bytes_sent(const Operation& operation) {
  const auto members = static_cast<int64_t>(operation.step->members.size());
  const int64_t range = operation.bounds.back() - operation.bounds.front();
  const auto size = static_cast<int64_t>(operation.vector.element_size());
  switch (operation.step->kind) {
    case Stage::Kind::kReduceScatter:
      return (range - operation.mine()) * size;
    case Stage::Kind::kAllReduce:
      return 2 * (members - 1) * range * size / members;
    case Stage::Kind::kAllGather:
      return operation.mine() * (members - 1) * size;
  }
  return 0;
}

// Direct exchange of slices: everybody sends slice i to member i, who sums up what comes in.
Work start_reduce_scatter(Operation& operation) {
  const std::vector<int64_t> sizes = operation.slice_sizes();
  std::vector<int64_t> in = sizes;
  std::vector<int64_t> out(sizes.size(), operation.mine());
  at::Tensor input = operation.range();
  operation.scratch = at::empty({static_cast<int64_t>(sizes.size()) * operation.mine()}, input.options());
  return operation.step->channel->alltoall_base(operation.scratch, input, out, in);
}

// Two exchange all that they have, which is as many bytes as a ring of two sends, in one step instead of two.
Work start_exchange(Operation& operation) {
  at::Tensor input = operation.range();
  const int64_t size = input.numel();
  const bool is_first = operation.own() == 0;
  std::vector<int64_t> sizes = is_first ? std::vector<int64_t>{0, size} : std::vector<int64_t>{size, 0};
  std::vector<int64_t> same = sizes;
  operation.scratch = at::empty_like(input);
  return operation.step->channel->alltoall_base(operation.scratch, input, sizes, same);
}

Work start_all_reduce(Operation& operation) {
  if (operation.step->members.size() == 2) return start_exchange(operation);
  std::vector<at::Tensor> tensors = {operation.range()};
  return operation.step->channel->allreduce(tensors);
}

// Everybody sends its slice to all others, straight into its place.
Work start_all_gather(Operation& operation) {
  const std::vector<int64_t> sizes = operation.slice_sizes();
  std::vector<int64_t> in(sizes.size(), operation.mine());
  std::vector<int64_t> out = sizes;
  at::Tensor output = operation.range();
  operation.scratch = operation.own_slice().repeat({static_cast<int64_t>(sizes.size())});
  return operation.step->channel->alltoall_base(output, operation.scratch, out, in);
}

Work start(Operation& operation) {
  switch (operation.step->kind) {
    case Stage::Kind::kReduceScatter:
      return start_reduce_scatter(operation);
    case Stage::Kind::kAllReduce:
      return start_all_reduce(operation);
    case Stage::Kind::kAllGather:
      return start_all_gather(operation);
  }
  return Work();
}

// The part of the vector of which this worker has the sum once the operation is done.
at::Tensor held_by(const Operation& operation) {
  return operation.step->kind == Stage::Kind::kAllReduce ? operation.range() : operation.own_slice();
}

// Adds up what came in, a row for each part of the sum, and divides it. On a CPU by blocks that stay in its cache.
void reduce(const at::Tensor& sum, const at::Tensor& rows, bool includes_own, int divisor) {
  constexpr int64_t kBlock = 64 << 10;
  const int64_t length = sum.is_cpu() ? kBlock : sum.numel();
  for (int64_t begin = 0; begin < sum.numel(); begin += length) {
    const int64_t end = std::min(begin + length, sum.numel());
    at::Tensor block = sum.slice(0, begin, end);
    const at::Tensor incoming = rows.slice(1, begin, end);
    if (includes_own) {
      at::sum_out(block, incoming, 0);
    } else {
      block.add_(incoming[0]);
    }
    if (divisor > 1) block.div_(divisor);
  }
}

// What is left to do after the messages. `divisor`: of sums that are complete with this operation, otherwise 1.
void finish(Operation& operation, int divisor) {
  const at::Tensor sum = held_by(operation);
  if (operation.step->kind != Stage::Kind::kAllGather && operation.scratch.defined() && sum.numel() > 0) {
    const bool includes_own = operation.step->kind == Stage::Kind::kReduceScatter;
    reduce(sum, operation.scratch.view({-1, sum.numel()}), includes_own, divisor);
  } else if (divisor > 1) {
    sum.div_(divisor);
  }
  operation.scratch = at::Tensor();
}

constexpr double kLeastBytes = 16 << 10;  // of a piece of a pipeline
constexpr int kWellFed = 3;               // with so many averages in it a phase has enough to do
constexpr int kShortEnds = 4;             // the first and the last piece of a pipeline are that much shorter

// Pieces of a chain with several phases: short enough that filling and draining the pipeline takes little of the time
// that everything takes together, but each of them worth its fixed costs.
int64_t pieces_of_a_pipeline(double bytes, double seconds, Seconds together) {
  constexpr double kLeastSeconds = 0.005;
  const double piece = std::max(kLeastSeconds, together.count() / kPiecesPerIteration);
  return std::max<int64_t>(1, std::llround(std::min(seconds / piece, bytes / kLeastBytes)));
}

double bytes_of(at::TensorList slices) {
  double bytes = 0;
  for (const at::Tensor& slice : slices) bytes += static_cast<double>(slice.nbytes());
  return bytes;
}

// A ring of several passes on many short messages as it is, and pieces would make them shorter. A pair exchanges two
// long ones: with two pieces, one is summed up and divided while the other is under way.
double bytes_of_a_piece(at::TensorList slices, const Chain& chain, Seconds together) {
  const double bytes = bytes_of(slices);
  if (chain.phases.size() > 1) {
    return bytes / static_cast<double>(pieces_of_a_pipeline(bytes, bytes * chain.seconds_per_byte, together));
  }
  const double slice = bytes / static_cast<double>(slices.size());
  return chain.group_size == 2 && slice >= 8 * Engine::kPieceBytes ? slice / 2 : bytes;
}

// Where to cut a slice: in equal pieces of about `piece` elements.
std::vector<int64_t> cuts(int64_t size, double piece) {
  const int64_t pieces = std::max<int64_t>(1, std::llround(static_cast<double>(size) / piece));
  std::vector<int64_t> bounds;
  for (int64_t number = 0; number <= pieces; ++number) bounds.push_back(size * number / pieces);
  return bounds;
}

// Operations of a process group that run side by side share its links: the more of them, the later the first one is
// done and the next phase has something to do. So only as many as it takes to have no link wait for the next message.
int most_at_once(const Operation& operation) {
  constexpr double kGap = 0.06;  // seconds from the end of one operation to the first bytes of the next, at worst
  constexpr double kMost = 4;    // as World's process groups have threads
  const double bytes =
      static_cast<double>(operation.vector.numel()) * static_cast<double>(operation.vector.element_size());
  const double seconds = std::max(1e-9, bytes * operation.step->seconds_per_byte);
  return 1 + static_cast<int>(std::ceil(std::min(kMost - 1, kGap / seconds)));
}

}  // namespace

// The averages under way belong to whoever drives them: a thread that has found work to do and nobody else at it. The
// owner drives when it starts averages and while it waits, so that these cost no hand-over to another thread; at other
// times the background thread does.
class Engine::Conductor {
 public:
  Conductor(World& world, Timeline* timeline)
      : world_(world), timeline_(timeline), background_thread_([this] { work_in_background(); }) {}

  ~Conductor() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    background_.notify_one();
    background_thread_.join();
  }

  void add(at::Tensor vector, const std::shared_ptr<const Chain>& chain, int64_t iteration) {
    std::unique_lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    incoming_.push_back({std::move(vector), chain, iteration, {}, 0, 0});
    ++unfinished_;
    // What ended is left to the background: the owner is busy with a backward pass, perhaps.
    if (!driven_) drive(lock, Drive::kIncoming);
    if (has_work()) background_.notify_one();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    owner_waits_ = true;
    while (unfinished_ > 0 && !failure_) {
      if (has_work()) {
        drive(lock, Drive::kAll);
      } else {
        owner_.wait(lock);
      }
    }
    owner_waits_ = false;
    if (failure_) std::rethrow_exception(failure_);
  }

  int64_t take_bytes_sent() {
    const std::lock_guard lock(mutex_);
    return std::exchange(bytes_sent_, 0);
  }

  std::vector<StageUse> take_stage_uses() {
    const std::lock_guard lock(mutex_);
    return std::exchange(stage_uses_, {});
  }

 private:
  struct Average {
    at::Tensor vector;
    std::shared_ptr<const Chain> chain;  // which may have no other owner any more
    int64_t iteration = 0;
    std::vector<std::vector<Operation>> phases;  // without operations that have nothing to move
    std::size_t phase = 0;                       // that is under way
    std::size_t pending = 0;                     // operations of this phase that are not done
  };
  struct Place {
    Average* average;
    Operation* operation;
    std::size_t phase;
  };

  // How many averages of one urgency have yet to reach their slowest phase, and are in it.
  struct Flow {
    int before = 0;
    int within = 0;

    bool starves() const { return before > 0 && within < kWellFed; }
  };

  // The operations of one process group, in the order that all its members follow.
  struct Queue {
    std::deque<Place> waiting;
    int running = 0;
  };

  enum class Drive { kIncoming, kAll };

  // REQUIRES: mutex_ is held.
  bool has_work() const { return !driven_ && !(incoming_.empty() && ended_.empty()); }

  void work_in_background() {
    std::unique_lock lock(mutex_);
    while (!failure_ && !(stopping_ && unfinished_ == 0)) {
      if (has_work() && !owner_waits_) {
        drive(lock, Drive::kAll);
      } else {
        background_.wait(lock);
      }
    }
    const bool has_failed = failure_ != nullptr;
    lock.unlock();
    if (has_failed) give_up();
  }

  // Starts and completes what there is. REQUIRES: `lock` holds mutex_, and nobody drives. After a failure nobody ever
  // does again.
  void drive(std::unique_lock<std::mutex>& lock, Drive what) {
    driven_ = true;
    try {
      while (!incoming_.empty() || (what == Drive::kAll && !ended_.empty())) {
        std::deque<Average> arrived = std::exchange(incoming_, {});
        std::deque<Place> ended;
        if (what == Drive::kAll) ended.swap(ended_);
        lock.unlock();
        for (Average& average : arrived) admit(std::move(average));
        for (Place& place : ended) complete(place);
        start_ready();
        lock.lock();
      }
      driven_ = false;
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      failure_ = std::current_exception();
      background_.notify_one();
    }
    owner_.notify_one();
  }

  // Gives every operation its place in the order of its process group.
  void admit(Average&& arrived) {
    Average& average = under_way_.emplace_back(std::move(arrived));
    for (const std::vector<Step>& steps : average.chain->phases) {
      std::vector<Operation>& operations = average.phases.emplace_back();
      for (const Step& step : steps) {
        Operation operation = make_operation(step, average.vector);
        if (!operation.empty()) operations.push_back(std::move(operation));
      }
    }
    for (std::size_t phase = 0; phase < average.phases.size(); ++phase) {
      for (Operation& operation : average.phases[phase]) {
        queues_[operation.step->channel.get()].waiting.push_back({&average, &operation, phase});
      }
    }
    average.pending = average.phases.front().size();
    count_at(average, 1);
    advance(average);
  }

  // Goes on to the next phase that has something to do; ends the average after the last one.
  void advance(Average& average) {
    while (average.pending == 0) {
      count_at(average, -1);
      ++average.phase;
      count_at(average, 1);
      if (average.phase == average.phases.size()) return retire(average);
      average.pending = average.phases[average.phase].size();
    }
  }

  void count_at(const Average& average, int change) {
    Flow& flow = flows_[average.chain->urgency];
    if (average.phase < average.chain->slowest) flow.before += change;
    if (average.phase == average.chain->slowest) flow.within += change;
  }

  void retire(Average& average) {
    under_way_.remove_if([&](const Average& other) { return &other == &average; });
    const std::lock_guard lock(mutex_);
    --unfinished_;
  }

  void start_ready() {
    for (auto& [channel, queue] : queues_) {
      while (!queue.waiting.empty() && may_start(queue)) {
        const Place place = queue.waiting.front();
        queue.waiting.pop_front();
        ++queue.running;
        begin(place);
      }
    }
  }

  bool may_start(const Queue& queue) const {
    const Place& first = queue.waiting.front();
    return first.average->phase == first.phase && queue.running < most_at_once(*first.operation) &&
           !is_held_back(first.average->chain->urgency);
  }

  // While the slowest phase of something more urgent runs out of work, nothing else may slow down the phases that feed
  // it. The most urgent averages are never held back, on no worker, so the others get their turn.
  bool is_held_back(double urgency) const {
    for (const auto& [other, flow] : flows_) {
      if (other <= urgency) return false;
      if (flow.starves()) return true;
    }
    return false;
  }

  void begin(const Place& place) {
    Operation& operation = *place.operation;
    operation.start = Clock::now();
    try {
      operation.work = start(operation);
    } catch (const std::exception& error) {
      throw explained(operation, error);
    }
    // The future outlives the conductor's interest in it, but not the conductor: it waits for all that is under way.
    operation.work->getFuture()->addCallback([this, place](auto&) {
      const std::lock_guard lock(mutex_);
      place.operation->end = Clock::now();
      ended_.push_back(place);
      (owner_waits_ ? owner_ : background_).notify_one();
    });
  }

  void complete(Place& place) {
    Operation& operation = *place.operation;
    try {
      operation.work->wait();
    } catch (const std::exception& error) {
      throw explained(operation, error);
    }
    --queues_[operation.step->channel.get()].running;
    const bool completes_sums = place.phase + 1 == place.average->chain->reduced_after;
    finish(operation, completes_sums ? place.average->chain->group_size : 1);
    account(place);
    operation.work = Work();
    --place.average->pending;
    advance(*place.average);
  }

  void account(const Place& place) {
    const Operation& operation = *place.operation;
    const int64_t bytes = bytes_sent(operation);
    const int stage = operation.step->stage;
    {
      const std::lock_guard lock(mutex_);
      bytes_sent_ += bytes;
      if (stage >= 0) stage_uses_.push_back({stage, operation.start, operation.end, bytes});
    }
    if (timeline_ == nullptr) return;
    timeline_->record({Span::Kind::kStage, name_of(operation.step->kind), place.average->iteration, operation.start,
                       operation.end, place.average->chain->round, operation.step->members, bytes});
  }

  PeerError explained(const Operation& operation, const std::exception& error) {
    const std::string doing = fmt::format("averaging with ranks {}", fmt::join(operation.step->members, ", "));
    return world_.explain(doing, operation.step->members, error.what());
  }

  // Whatever else is under way is given up, so that neither this worker nor its peers wait for the timeout.
  void give_up() {
    world_.abandon_channels();
    for (Average& average : under_way_) {
      for (std::vector<Operation>& phase : average.phases) {
        for (Operation& operation : phase) outlast(operation);
      }
    }
  }

  // One failure has been kept; the others follow from it.
  static void outlast(Operation& operation) {
    if (!operation.work) return;
    try {
      operation.work->wait();
    } catch (const std::exception&) {
      return;
    }
  }

  World& world_;
  Timeline* timeline_;

  // Of whoever drives.
  std::list<Average> under_way_;
  std::map<ChannelType*, Queue> queues_;
  std::map<double, Flow, std::greater<>> flows_;  // by urgency

  std::mutex mutex_;
  std::condition_variable background_;
  std::condition_variable owner_;
  std::deque<Average> incoming_;
  std::deque<Place> ended_;
  std::size_t unfinished_ = 0;
  int64_t bytes_sent_ = 0;
  std::vector<StageUse> stage_uses_;
  std::exception_ptr failure_;
  bool driven_ = false;
  bool owner_waits_ = false;
  bool stopping_ = false;

  std::thread background_thread_;  // last: it uses all of the above
};

Engine::Engine(World& world, Timeline* timeline) : conductor_(std::make_unique<Conductor>(world, timeline)) {}
Engine::~Engine() = default;

void Engine::average(at::TensorList slices, const std::shared_ptr<const Chain>& chain, int64_t iteration,
                     Seconds together) {
  if (chain->empty() || slices.empty()) return;
  const auto element = static_cast<double>(slices.front().element_size());
  const double piece = std::max(1.0, bytes_of_a_piece(slices, *chain, together) / element);
  const bool has_short_ends = chain->phases.size() > 1 && piece * element >= kShortEnds * kLeastBytes &&
                              bytes_of(slices) >= 4 * piece * element;
  for (std::size_t index = 0; index < slices.size(); ++index) {
    const at::Tensor& slice = slices[index];
    std::vector<int64_t> bounds = cuts(slice.numel(), piece);
    // So the slowest phase starts early, and little is left to do after it.
    if (has_short_ends && index == 0) bounds.insert(bounds.begin() + 1, bounds[1] / kShortEnds);
    if (has_short_ends && index + 1 == slices.size()) {
      bounds.insert(bounds.end() - 1, slice.numel() - (slice.numel() - *(bounds.end() - 2)) / kShortEnds);
    }
    for (std::size_t number = 0; number + 1 < bounds.size(); ++number) {
      const int64_t length = bounds[number + 1] - bounds[number];
      if (length > 0) conductor_->add(slice.narrow(0, bounds[number], length), chain, iteration);
    }
  }
}

void Engine::wait() { conductor_->wait(); }
int64_t Engine::take_bytes_sent() { return conductor_->take_bytes_sent(); }
std::vector<StageUse> Engine::take_stage_uses() { return conductor_->take_stage_uses(); }

}  // namespace dssync
