#include "dssync/comm/arrivals.h"

#include <algorithm>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "dssync/comm/errors.h"
#include "dssync/comm/ranks_text.h"

namespace dssync {
namespace {

using std::chrono::milliseconds;

std::vector<Rank> missing(const Waiting& waiting, const std::string& arrivals) {
  std::vector<Rank> result;
  for (Rank rank = 0; rank < waiting.size; ++rank) {
    if (!waiting.store->check({fmt::format("{}/{}", arrivals, rank)})) result.push_back(rank);
  }
  return result;
}

}  // namespace

void await(const Waiting& waiting, const std::string& key, const std::string& doing, const std::string& arrivals) {
  const auto deadline = std::chrono::steady_clock::now() + waiting.timeout;
  const std::string start = fmt::format("rank {}: {}", waiting.rank, doing);
  try {
    for (milliseconds pause{1}; !waiting.store->check({key}); pause = std::min(2 * pause, milliseconds(100))) {
      const std::string lost = waiting.losses();
      // Whoever was lost may have been here before: then this worker goes on, and hears of it where it needs the other.
      if (!lost.empty() && waiting.store->check({key})) return;
      if (!lost.empty()) throw PeerError(fmt::format("{}: {}", start, lost));
      if (std::chrono::steady_clock::now() >= deadline) {
        throw PeerError(fmt::format("{}: {} did not come within {} s", start, ranks_text(missing(waiting, arrivals)),
                                    static_cast<double>(waiting.timeout.count()) / 1000));
      }
      std::this_thread::sleep_for(pause);
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string lost = waiting.losses();  // rank 0 may have been lost with the store that it serves
    throw PeerError(lost.empty() ? fmt::format("{}: lost the store ({})", start, plain_message(error.what()))
                                 : fmt::format("{}: {}", start, lost));
  }
}

}  // namespace dssync
