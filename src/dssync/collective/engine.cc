#include "dssync/collective/engine.h"

#include <utility>

#include <ATen/ATen.h>

#include "dssync/collective/conductor.h"
#include "dssync/collective/pieces.h"

namespace dssync {
namespace {

Cutting cutting_of(at::TensorList slices, const Chain& chain, Seconds together) {
  std::vector<std::int64_t> elements;
  for (const at::Tensor& slice : slices) elements.push_back(slice.numel());
  const ChainShape shape{chain.phases.size(), chain.seconds_per_byte, chain.wire_share};
  return cut_into_pieces(elements, static_cast<std::int64_t>(slices.front().element_size()), shape, together);
}

}  // namespace

void require_done(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    if (outcome.is_void()) std::rethrow_exception(outcome.cause);
  }
}

Engine::Engine(Explain explain, Timeline* timeline)
    : conductor_(std::make_unique<Conductor>(std::move(explain), timeline)) {}

Engine::~Engine() = default;

AverageId Engine::average(at::TensorList slices, const std::shared_ptr<const Chain>& chain, std::int64_t iteration,
                          Seconds together, const Travel& travel) {
  CutAverage average{.id = next_++, .chain = chain, .iteration = iteration, .travel = travel};
  const AverageId id = average.id;
  if (!chain->empty() && !slices.empty()) {
    const Cutting cutting = cutting_of(slices, *chain, together);
    if (cutting.is_joined) {
      average.joined = at::cat(slices);
      average.slices = slices.vec();
    }
    if (chain->weight != 1) {
      for (at::Tensor values : cutting.is_joined ? std::vector<at::Tensor>{average.joined} : slices.vec()) {
        values.mul_(chain->weight);
      }
    }
    for (const Piece& piece : cutting.pieces) {
      const at::Tensor& whole = cutting.is_joined ? average.joined : slices[piece.slice];
      average.pieces.push_back(whole.narrow(0, piece.begin, piece.end - piece.begin));
    }
  }
  conductor_->add(std::move(average));
  return id;
}

std::vector<Outcome> Engine::wait(Until until) { return conductor_->wait(until, nullptr); }
std::vector<Outcome> Engine::wait(const std::vector<AverageId>& averages, Until until) {
  return conductor_->wait(until, &averages);
}
std::int64_t Engine::take_bytes_sent() { return conductor_->take_bytes_sent(); }
std::vector<StageUse> Engine::take_stage_uses() { return conductor_->take_stage_uses(); }

}  // namespace dssync
