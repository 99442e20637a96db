#include "dssync/monitor/history.h"

#include <set>

namespace dssync {
namespace {

constexpr std::size_t kComputing = 5;  // iterations

}  // namespace

void History::adopt(std::int64_t first_iteration, std::shared_ptr<const StageTable> table) {
  while (!tables_.empty() && tables_.back().first >= first_iteration) tables_.pop_back();
  tables_.emplace_back(first_iteration, std::move(table));
}

void History::add(const SampleBatch& batch) {
  std::set<std::int64_t> iterations;
  for (const StageSample& sample : batch.stages) iterations.insert(sample.iteration);
  for (const WorkerSample& sample : batch.workers) iterations.insert(sample.iteration);
  const std::int64_t added = last_iteration_;
  for (const std::int64_t iteration : iterations) {
    if (iteration > added) view(iteration, batch);
  }
  while (!views_.empty() && views_.front().iteration <= last_iteration_ - forget_) views_.pop_front();
}

void History::view(std::int64_t iteration, const SampleBatch& batch) {
  const auto after =
      std::find_if(tables_.begin(), tables_.end(), [iteration](const auto& entry) { return entry.first > iteration; });
  if (after == tables_.begin()) return;
  tables_.erase(tables_.begin(), after - 1);
  if (table_ != tables_.front().second) {
    table_ = tables_.front().second;
    views_.clear();
  }
  SampleBatch part;
  for (const StageSample& sample : batch.stages) {
    if (sample.iteration == iteration) part.stages.push_back(sample);
  }
  for (const WorkerSample& sample : batch.workers) {
    if (sample.iteration == iteration) part.workers.push_back(sample);
  }
  views_.push_back(observe(*table_, iteration, part, links_));
  const std::int64_t unheard = last_iteration_ < 0 ? 0 : iteration - last_iteration_ - 1;
  keep_time(paces_[false], unheard, [](const IterationView& view) { return view.compute_seconds + view.sync_seconds; });
  keep_time(paces_[true], unheard,
            [](const IterationView& view) { return std::max(view.compute_seconds, view.sync_seconds); });
  last_iteration_ = iteration;
}

template <typename Seconds>
void History::keep_time(Pace& pace, std::int64_t unheard, Seconds seconds) {
  if (const double usual = median(latest(window_, seconds)); usual > 0) pace.usual = usual;
  const double latest = seconds(views_.back());
  pace.elapsed += static_cast<double>(unheard) * pace.usual + (latest > 0 ? latest : pace.usual);
}

std::vector<const IterationView*> History::complete(std::size_t stage) const {
  std::vector<const IterationView*> result;
  for (auto view = views_.rbegin(); view != views_.rend() && result.size() < window_; ++view) {
    if (view->stages[stage].complete) result.push_back(&*view);
  }
  return result;
}

double History::others_on(std::size_t link, double framing) const {
  double bytes = 0;
  double seconds = 0;
  std::size_t count = 0;
  for (auto view = views_.rbegin(); view != views_.rend() && count < window_; ++view, ++count) {
    if (view->counted[link].seconds <= 0) continue;
    bytes += view->counted[link].bytes - framing * view->bytes[link];
    seconds += view->counted[link].seconds;
  }
  return bytes > 0 ? bytes / seconds : 0;
}

double History::compute_seconds() const {
  return median(latest(kComputing, [](const IterationView& view) { return view.compute_seconds; }));
}

}  // namespace dssync
