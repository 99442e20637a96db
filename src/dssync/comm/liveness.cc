#include "dssync/comm/liveness.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/comm/bounded_store.h"
#include "dssync/comm/ranks_text.h"
#include "dssync/comm/store.h"

namespace dssync {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kLossCount = "losses/count";
constexpr const char* kLeft = "left";  // instead of a pulse
std::string loss_key(std::int64_t number) { return fmt::format("losses/{}", number); }
std::string pulse_key(Rank rank) { return fmt::format("pulse/{}", rank); }

// A publisher may end between the two calls: readers must not wait for the text of a number.
void publish(c10d::Store& store, const Loss& loss) {
  const std::int64_t number = store.add(kLossCount, 1);
  put_text(store, loss_key(number), fmt::format("{} {} {}", loss.rank, loss.told_by, loss.description));
}

Loss parse_loss(const std::string& text) {
  std::istringstream stream(text);
  Loss loss;
  stream >> loss.rank >> loss.told_by;
  stream.get();  // the space
  loss.description = text.substr(static_cast<std::size_t>(stream.tellg()));
  return loss;
}

std::string leavers(const std::map<Rank, std::string>& pulses) {
  std::vector<Rank> ranks;
  for (const auto& [rank, pulse] : pulses) {
    if (pulse == kLeft) ranks.push_back(rank);
  }
  return ranks.empty() ? "" : fmt::format("{} {} left", ranks_text(ranks), ranks.size() == 1 ? "has" : "have");
}

// "rank 3 is still at iteration 17": those furthest behind, where somebody is behind.
std::string laggards(const std::map<Rank, std::string>& pulses) {
  std::map<std::int64_t, std::vector<Rank>> by_iteration;
  for (const auto& [rank, pulse] : pulses) {
    const std::size_t space = pulse.find(' ');  // "BEATS ITERATION"
    if (space != std::string::npos) by_iteration[std::stoll(pulse.substr(space + 1))].push_back(rank);
  }
  if (by_iteration.size() < 2) return "";
  const auto& [iteration, ranks] = *by_iteration.begin();
  return fmt::format("{} {} still at iteration {}", ranks_text(ranks), ranks.size() == 1 ? "is" : "are", iteration);
}

}  // namespace

void publish_loss(const Store& store, Rank rank, const std::string& description) {
  publish(*store, {rank, Loss::kLauncher, description});
}

// Listeners are called while the mutex is held, so that removing one waits for its call.
class LossListeners {
 public:
  int add(LossListener listener) {
    const std::lock_guard lock(mutex_);
    listeners_[++last_] = {std::move(listener), 0};
    return last_;
  }

  void remove(int number) {
    const std::lock_guard lock(mutex_);
    listeners_.erase(number);
  }

  void tell(const LossRecord& record) {
    const std::lock_guard lock(mutex_);
    for (auto& [number, entry] : listeners_) {
      for (const Loss& loss : record.after(entry.heard)) {
        ++entry.heard;
        entry.listener(loss);
      }
    }
  }

 private:
  struct Entry {
    LossListener listener;
    std::size_t heard = 0;
  };

  std::mutex mutex_;
  std::map<int, Entry> listeners_;
  int last_ = 0;
};

LossSubscription::LossSubscription(std::shared_ptr<LossListeners> listeners, int number)
    : listeners_(std::move(listeners)), number_(number) {}

LossSubscription::~LossSubscription() {
  if (listeners_) listeners_->remove(number_);
}

LossSubscription::LossSubscription(LossSubscription&& other) noexcept
    : listeners_(std::exchange(other.listeners_, nullptr)), number_(other.number_) {}

LossSubscription& LossSubscription::operator=(LossSubscription&& other) noexcept {
  std::swap(listeners_, other.listeners_);
  std::swap(number_, other.number_);
  return *this;
}

Liveness::Liveness(Store connection, std::shared_ptr<LossRecord> losses, LivenessOptions options)
    : store_(std::move(connection)),
      losses_(std::move(losses)),
      options_(options),
      listeners_(std::make_shared<LossListeners>()),
      watch_(options.rank, options.size, options.beat, options.silence),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Liveness::~Liveness() { leave(); }

void Liveness::leave() noexcept {
  const std::lock_guard lock(leaving_);
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Liveness::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    tick();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, options_.beat,
                      [this] { return is_woken_ || (trouble_.empty() && (!reports_.empty() || !looks_.empty())); });
    is_woken_ = false;
  }
  if (!options_.has_own_connection || !trouble().empty()) return;
  try {
    put_text(*store_, pulse_key(options_.rank), kLeft);
  } catch (const std::exception&) {
    // The store is gone: nobody is there to see it.
  }
}

void Liveness::tick() {
  std::string trouble;
  try {
    use_store();
  } catch (const StoreSilence& silence) {
    trouble = fmt::format("the store does not answer, either ({})", silence.what());
    if (options_.rank_0_serves_store && options_.rank != 0 && options_.has_own_connection) {
      losses_->add({0, options_.rank, "gives no sign of life, nor does the store that it serves"});
    }
  } catch (const std::exception& error) {
    const std::string what = plain_message(error.what());
    trouble = fmt::format("the store is gone, too: the launcher or rank 0 has ended ({})", what);
    losses_->add({Loss::kStore, options_.rank, what});
  }
  listeners_->tell(*losses_);
  const std::lock_guard lock(mutex_);
  ++ticks_;
  trouble_ = trouble;
  changed_.notify_all();
}

void Liveness::use_store() {
  const Clock::time_point now = Clock::now();
  publish_reports();
  if (options_.has_own_connection) {
    put_text(*store_, pulse_key(options_.rank), fmt::format("{} {}", beats_++, progress_.load()));
  }
  read_losses();
  // Whom the others have given up accuses nobody.
  if (options_.has_own_connection && !has_reported_failure_ && !losses_->is_given_up()) watch_neighbours(now);
  answer_looks();
}

void Liveness::publish_reports() {
  std::vector<Loss> reports;
  {
    const std::lock_guard lock(mutex_);
    reports = reports_;
  }
  for (const Loss& report : reports) {
    publish(*store_, report);
    const std::lock_guard lock(mutex_);
    reports_.erase(reports_.begin());
    changed_.notify_all();
  }
}

void Liveness::read_losses() {
  const std::int64_t count = store_->add(kLossCount, 0);
  while (losses_counted_ < count) losses_unread_.insert(++losses_counted_);
  for (auto number = losses_unread_.begin(); number != losses_unread_.end();) {
    const std::string key = loss_key(*number);
    if (!store_->check({key})) {
      ++number;
      continue;
    }
    const Loss loss = parse_loss(get_text(*store_, key));
    losses_->add(loss);
    watch_.leave_out(loss.rank);
    number = losses_unread_.erase(number);
  }
}

void Liveness::watch_neighbours(NeighbourWatch::Time now) {
  watch_.begin_look(now);
  for (const Rank rank : watch_.watched()) {
    const std::string pulse = read_pulse(rank, watch_.has_seen(rank));
    if (pulse == kLeft) {
      watch_.leave_out(rank);
    } else if (!pulse.empty()) {
      watch_.saw(rank, pulse, now);
    }
  }
  for (const Rank rank : watch_.silent(now)) {
    const Loss loss{rank, options_.rank, "gives no sign of life"};
    losses_->add(loss);
    watch_.leave_out(rank);
    publish(*store_, loss);
  }
}

// Empty where there is none yet.
std::string Liveness::read_pulse(Rank rank, bool is_there) {
  const std::string key = pulse_key(rank);
  return is_there || store_->check({key}) ? get_text(*store_, key) : "";
}

void Liveness::answer_looks() {
  std::vector<std::shared_ptr<Look>> looks;
  {
    const std::lock_guard lock(mutex_);
    looks = std::exchange(looks_, {});
  }
  for (const std::shared_ptr<Look>& look : looks) {
    Pulses pulses;
    for (const Rank rank : look->ranks) pulses[rank] = read_pulse(rank, false);
    look->seen.set_value(std::move(pulses));
  }
}

Liveness::Pulses Liveness::pulses_of(const std::vector<Rank>& ranks) {
  const auto look = std::make_shared<Look>();
  look->ranks = ranks;
  std::future<Pulses> seen = look->seen.get_future();
  {
    const std::lock_guard lock(mutex_);
    looks_.push_back(look);
    changed_.notify_all();
  }
  if (seen.wait_for(options_.silence) != std::future_status::ready) return {};
  try {
    return seen.get();
  } catch (const std::future_error&) {
    return {};  // the store failed meanwhile
  }
}

std::string Liveness::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

LossSubscription Liveness::on_loss(LossListener listener) {
  LossSubscription subscription(listeners_, listeners_->add(std::move(listener)));
  const std::lock_guard lock(mutex_);
  is_woken_ = true;
  changed_.notify_all();
  return subscription;
}

void Liveness::report_failure(const std::string& cause) noexcept {
  constexpr milliseconds kPatience{1000};
  try {
    has_reported_failure_ = true;
    const Loss loss{options_.rank, options_.rank, "failed: " + cause};
    losses_->add(loss);
    std::unique_lock lock(mutex_);
    reports_.push_back(loss);
    changed_.notify_all();
    if (std::this_thread::get_id() == thread_.get_id()) return;
    changed_.wait_for(lock, kPatience, [this] { return reports_.empty(); });
  } catch (const std::exception&) {
    // Nobody can be told. The others see this worker's connections close.
  }
}

PeerError Liveness::explain(const std::string& doing, const std::vector<Rank>& members, const std::string& what) {
  const std::string start = fmt::format("rank {}: {}", options_.rank, doing);
  const std::string symptom = plain_message(what);
  // A neighbour's watch needs the silence and three beats: to see the last pulse, to look again, and to be read.
  const milliseconds patience = 3 * options_.beat + (options_.has_own_connection ? options_.silence : milliseconds(0));
  const Clock::time_point deadline = Clock::now() + patience;
  std::unique_lock lock(mutex_);
  const std::int64_t first = ticks_;
  bool has_looked = false;
  while (true) {
    const std::string lost = losses();
    if (!lost.empty()) return PeerError(fmt::format("{}: {}", start, lost));
    // The tick that was under way may have begun before the failure; the one after it has seen all that led to it.
    const bool is_fresh = ticks_ >= first + 2;
    const bool is_late = Clock::now() >= deadline;
    if ((is_fresh || is_late) && !trouble_.empty()) return PeerError(fmt::format("{}: {}; {}", start, symptom, trouble_));
    if (is_late) break;
    if (is_fresh && !has_looked) {
      has_looked = true;
      lock.unlock();
      const std::string left = leavers(pulses_of(members));
      if (!left.empty()) return PeerError(fmt::format("{}: {} ({})", start, left, symptom));
      lock.lock();
      continue;
    }
    changed_.wait_until(lock, deadline);
  }
  lock.unlock();
  const std::string behind = laggards(pulses_of(members));
  return PeerError(fmt::format("{}: {}{}{}", start, behind, behind.empty() ? "" : ": ", symptom));
}

}  // namespace dssync
