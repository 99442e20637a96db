#include "dssync/comm/liveness.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/comm/c10d/bounded_store.h"
#include "dssync/comm/c10d/store.h"
#include "dssync/comm/ranks_text.h"

namespace dssync {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kLeft = "left";  // instead of a pulse
std::string pulse_key(Rank rank) { return fmt::format("pulse/{}", rank); }

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
    const Rank server = store_server_;
    if (server != kNone && server != options_.rank && options_.has_own_connection) {
      losses_->add({server, options_.rank, "gives no sign of life, nor does the store that it serves"});
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
  for (const Loss& loss : published_.read(*store_)) {
    losses_->add(loss);
    watch_.leave_out(loss.rank);
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
  LossSubscription subscription(listeners_, std::move(listener));
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
  return PeerError(fmt::format("rank {}: {}: {}", options_.rank, doing, cause_among(members, plain_message(what))));
}

std::string Liveness::cause_among(const std::vector<Rank>& members, const std::string& symptom) {
  // A neighbour's watch needs the silence and three beats: to see the last pulse, to look again, and to be read.
  const milliseconds patience = 3 * options_.beat + (options_.has_own_connection ? options_.silence : milliseconds(0));
  const Clock::time_point deadline = Clock::now() + patience;
  std::unique_lock lock(mutex_);
  // The tick that is under way may have begun before the failure; the one after it sees all that led to it.
  const std::int64_t fresh = ticks_ + 2;
  const auto is_told = [this] { return !losses().empty(); };
  changed_.wait_until(lock, deadline, [&] { return is_told() || ticks_ >= fresh; });
  if (is_told()) return losses();
  if (!trouble_.empty()) return fmt::format("{}; {}", symptom, trouble_);
  lock.unlock();

  const std::string left = leavers(pulses_of(members));
  if (!left.empty()) return fmt::format("{} ({})", left, symptom);
  lock.lock();
  changed_.wait_until(lock, deadline, [&] { return is_told() || !trouble_.empty(); });
  if (is_told()) return losses();
  if (!trouble_.empty()) return fmt::format("{}; {}", symptom, trouble_);
  lock.unlock();

  const std::string behind = laggards(pulses_of(members));
  return fmt::format("{}{}{}", behind, behind.empty() ? "" : ": ", symptom);
}

}  // namespace dssync
