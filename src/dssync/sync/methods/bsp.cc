#include "dssync/sync/methods/bsp.h"

#include <memory>

#include "dssync/base/error.h"
#include "dssync/planner/codecs.h"
#include "dssync/planner/stages.h"
#include "dssync/sync/gradient_averages.h"
#include "dssync/sync/methods/base_synchronizer.h"

namespace dssync {
namespace {

class Bsp final : public BaseSynchronizer {
 public:
  Bsp(World& world, const Replica& replica, const Topology& topology, const SyncOptions& options, Timeline* timeline)
      : BaseSynchronizer(world, replica, topology, timeline, options),
        gradients_(replica_.parameters, parameters_.flats(), options.bucket_bytes, make_chain(options), engine_) {}

  int replicas() const override { return 1; }

 protected:
  void on_before_forward() override { gradients_.begin(iteration()); }

  void on_after_backward() override {
    if (!gradients_.has_begun()) throw Error("after_backward() without before_forward()");
    wait(gradients_.finish());
  }

  double consolidate_parameters() override { return 0; }  // replicas are equal at all times

  void add_state(SyncState& state) const override { gradients_.save(state.tensors); }
  void take_state(const SyncState& state) override { gradients_.restore(state.tensors); }

 private:
  std::shared_ptr<const Chain> make_chain(const SyncOptions& options) {
    ChainBuilder builder(world_, topology_);
    const Lowering lowering = info_of(options.method).lowering(world_.everyone(), topology_);
    const CodecChoice choice = options.codec_choice();
    const Codecs codecs(choice.codec.value_or(Codec::kFloat32), choice.bytes_per_second);
    builder.add(encoded(lowering, topology_, codecs), world_.size());
    return std::make_shared<const Chain>(builder.build().front());
  }

  GradientAverages gradients_;
};

}  // namespace

std::unique_ptr<Synchronizer> make_bsp(World& world, const Replica& replica, const Topology& topology,
                                       const SyncOptions& options, Timeline* timeline) {
  return std::make_unique<Bsp>(world, replica, topology, options, timeline);
}

}  // namespace dssync
