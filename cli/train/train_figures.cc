#include "train/train_figures.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace dssync::cli {

void TrainFigures::add(const IterationReport& report) {
  ++iterations;
  seconds += report.iteration_seconds;
  compute_seconds += report.compute_seconds;
  sync_seconds += report.sync_seconds;
  bytes_sent += static_cast<double>(report.bytes_sent);
  loss += report.loss;
  images += report.images_per_second * report.iteration_seconds;
  last = report;
}

std::string grouped(double number) {
  if (std::abs(number) < 999.5) return fmt::format("{:.3g}", number);
  std::string digits = fmt::format("{:.0f}", number);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string progress_text(const TrainFigures& figures, const StartReport& start) {
  const std::int64_t per_epoch = std::max<std::int64_t>(1, start.iterations_per_epoch);
  const std::int64_t epochs = (start.total_iterations + per_epoch - 1) / per_epoch;
  const IterationReport& last = figures.last;
  return fmt::format("epoch {}/{}  iteration {}/{}  loss {:.3g}  {} {}/s  sync {:.0f} %  disagreement {:.2g}",
                     last.epoch, epochs, last.iteration, last.total_iterations, figures.per_iteration(figures.loss),
                     grouped(figures.images_per_second()), start.examples_word, 100 * figures.sync_share(),
                     last.relative_disagreement);
}

}  // namespace dssync::cli
