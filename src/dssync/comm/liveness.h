// Shows that this worker lives, watches others, and says who is to blame when something fails.
//
// A thread of its own does all of it, on a connection to the store of its own, twice a second: it writes this worker's
// pulse, reads how many losses were published, and looks at the pulses of two neighbours (NeighbourWatch). A neighbour
// that is silent for 2.5 s is published as lost. So a stopped worker is known to all others after 4 s at the latest, at
// the price of four calls of the store per worker and beat.
//
// Thread-safe. No function waits for the store longer than it says.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "dssync/comm/c10d/c10d.h"
#include "dssync/comm/errors.h"
#include "dssync/comm/losses/loss_listeners.h"
#include "dssync/comm/losses/loss_record.h"
#include "dssync/comm/losses/neighbour_watch.h"
#include "dssync/comm/losses/published_losses.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct LivenessOptions {
  Rank rank = 0;
  int size = 1;
  // Whether the connection is for liveness alone. Otherwise a call of somebody else could stop this worker's pulse: it
  // shows none, and hears only of losses that others publish.
  bool has_own_connection = true;
  std::chrono::milliseconds beat{500};
  std::chrono::milliseconds silence{2500};
};

class Liveness {
 public:
  // `connection` is to the run's part of the store; its calls end (BoundedStore) within `silence`.
  Liveness(Store connection, std::shared_ptr<LossRecord> losses, LivenessOptions options);
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  // The others see that this worker has left, which is no loss. Ends the watch. Waits for the store as long as
  // `silence`.
  void leave() noexcept;

  // From now on a store that does not answer is this worker's silence.
  void set_store_server(Rank rank) { store_server_ = rank; }

  // Shown with the pulse, for explanations of a timeout.
  void set_progress(std::int64_t iteration) { progress_ = iteration; }

  // As LossRecord::text(). Asks nobody.
  std::string losses() const { return losses_->text(); }

  // As World::on_loss.
  LossSubscription on_loss(LossListener listener);

  // What a listener has thrown, if one has, once.
  void rethrow_from_listeners() { listeners_->rethrow(); }

  // Tells all others why this worker gives up: they take it for lost. Waits a second at most.
  void report_failure(const std::string& cause) noexcept;
  bool has_reported_failure() const { return has_reported_failure_; }

  // The error to throw after a call of c10d, done together with `members`, failed with `what`; no other failure is a
  // peer's fault. At once where a loss is known. Otherwise it takes up to 4 s to learn which worker is lost, has left
  // or is behind.
  PeerError explain(const std::string& doing, const std::vector<Rank>& members, const std::string& what);

 private:
  using Pulses = std::map<Rank, std::string>;
  struct Look {
    std::vector<Rank> ranks;
    std::promise<Pulses> seen;
  };

  void run(const std::stop_token& stop);
  void tick();
  void use_store();
  void publish_reports();
  void read_losses();
  void watch_neighbours(NeighbourWatch::Time now);
  void answer_looks();
  std::string read_pulse(Rank rank, bool is_there);
  Pulses pulses_of(const std::vector<Rank>& ranks);
  std::string trouble() const;
  std::string cause_among(const std::vector<Rank>& members, const std::string& symptom);

  const Store store_;
  const std::shared_ptr<LossRecord> losses_;
  const LivenessOptions options_;
  const std::shared_ptr<LossListeners> listeners_;
  std::atomic<Rank> store_server_{kNone};  // none that is known
  std::atomic<std::int64_t> progress_{0};
  std::atomic<bool> has_reported_failure_{false};

  // Of the thread.
  NeighbourWatch watch_;
  std::int64_t beats_ = 0;
  PublishedLosses published_;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Loss> reports_;                 // to be published
  std::vector<std::shared_ptr<Look>> looks_;  // to be taken
  std::int64_t ticks_ = 0;                    // done
  std::string trouble_;                       // with the store, in the last tick
  bool is_woken_ = false;                     // somebody wants a tick now

  std::mutex leaving_;
  std::jthread thread_;  // last: it uses the others, and asks to stop and joins
};

}  // namespace dssync
