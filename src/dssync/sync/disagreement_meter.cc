#include "dssync/sync/disagreement_meter.h"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

namespace dssync {
namespace {

constexpr std::int64_t kSampled = 1 << 16;  // elements of each flat tensor

at::Tensor thinned(const at::Tensor& vector) {
  return vector.slice(0, 0, vector.numel(), std::max<std::int64_t>(1, vector.numel() / kSampled))
      .to(at::kDouble, false, true);
}

double squared(const at::Tensor& tensor) { return tensor.square().sum().item<double>(); }

}  // namespace

DisagreementMeter::DisagreementMeter(std::size_t cycle, double steady, int workers)
    : cycle_(cycle), factor_(workers < 2 ? 0 : steady / (1 - 1 / static_cast<double>(workers))) {}

double DisagreementMeter::add(double squared_move) {
  moves_.push_back(squared_move);
  if (moves_.size() > cycle_) moves_.pop_front();
  // Anew every time: in a running sum one NaN would stay for ever.
  return factor_ * std::accumulate(moves_.begin(), moves_.end(), 0.0) / static_cast<double>(moves_.size());
}

void DisagreementMeter::set_moves(const std::vector<double>& moves) {
  const std::size_t kept = std::min(moves.size(), cycle_);
  moves_.assign(moves.end() - static_cast<std::ptrdiff_t>(kept), moves.end());
}

MoveSample::MoveSample(const std::vector<Flat>& flats) {
  for (const Flat& flat : flats) before_.push_back(thinned(flat.vector));
}

std::pair<double, double> MoveSample::measure(const std::vector<Flat>& flats) const {
  std::pair<double, double> result{0, 0};
  for (std::size_t index = 0; index < flats.size(); ++index) {
    const at::Tensor now = thinned(flats[index].vector);
    const auto scale = static_cast<double>(flats[index].vector.numel()) / static_cast<double>(now.numel());
    result.first += scale * squared(now - before_[index]);
    result.second += scale * squared(now);
  }
  return result;
}

}  // namespace dssync
