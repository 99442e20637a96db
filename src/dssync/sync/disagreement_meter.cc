#include "dssync/sync/disagreement_meter.h"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

namespace dssync {
namespace {

constexpr std::int64_t kSampled = 1 << 16;  // elements of each flat tensor

// Every so manieth element is sampled.
std::int64_t stride_of(const at::Tensor& vector) { return std::max<std::int64_t>(1, vector.numel() / kSampled); }

double squared(const at::Tensor& tensor) { return tensor.square().sum().item<double>(); }

}  // namespace

DisagreementMeter::DisagreementMeter(std::size_t cycle, double steady, double brought_in)
    : cycle_(cycle), factor_(brought_in > 0 ? steady / brought_in : 0) {}

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

MoveSample::MoveSample(const std::vector<Flat>& flats) : flats_(flats) {}

void MoveSample::note(std::size_t number, const FlatSlice& slice) { notes_[number] = {slice, thinned(slice)}; }

// The elements that a sample of the whole tensor has in this slice.
at::Tensor MoveSample::thinned(const FlatSlice& slice) const {
  const at::Tensor& vector = flats_[slice.flat].vector;
  const std::int64_t stride = stride_of(vector);
  const std::int64_t first = (slice.begin + stride - 1) / stride * stride;
  return vector.slice(0, std::min(first, slice.end), slice.end, stride).to(at::kDouble, false, true);
}

std::pair<double, double> MoveSample::measure() const {
  std::pair<double, double> result{0, 0};
  for (const auto& [number, note] : notes_) {
    const at::Tensor now = thinned(note.slice);
    const auto size = flats_[note.slice.flat].vector.numel();
    const std::int64_t stride = stride_of(flats_[note.slice.flat].vector);
    const double scale = static_cast<double>(size) / static_cast<double>((size + stride - 1) / stride);
    result.first += scale * squared(now - note.before);
    result.second += scale * squared(now);
  }
  return result;
}

}  // namespace dssync
