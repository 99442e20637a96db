#include "dssync/sync/take_over.h"

#include <ATen/ATen.h>

namespace dssync {
namespace {

at::Tensor stretch_of(const std::vector<Flat>& flats, const FlatSlice& slice) {
  return flats[slice.flat].vector.narrow(0, slice.begin, slice.end - slice.begin);
}

class Replace final : public TakeOver {
 public:
  explicit Replace(const std::vector<Flat>& live) : live_(live) {}

  const std::vector<Flat>& averaged() const override { return live_; }
  void prepare(const std::vector<FlatSlice>& /*slices*/) override {}
  void apply(const std::vector<FlatSlice>& /*slices*/) override {}

 private:
  const std::vector<Flat> live_;
};

class AddCorrection final : public TakeOver {
 public:
  AddCorrection(const std::vector<Flat>& live, bool never_negative)
      : live_(live), average_(flat_like(live)), snapshot_(flat_like(live)), never_negative_(never_negative) {}

  const std::vector<Flat>& averaged() const override { return average_; }

  void prepare(const std::vector<FlatSlice>& slices) override {
    for (const FlatSlice& slice : slices) {
      const at::Tensor live = stretch_of(live_, slice);
      stretch_of(snapshot_, slice).copy_(live);
      stretch_of(average_, slice).copy_(live);
    }
  }

  void apply(const std::vector<FlatSlice>& slices) override {
    for (const FlatSlice& slice : slices) {
      const at::Tensor live = stretch_of(live_, slice);
      live.add_(stretch_of(average_, slice).sub_(stretch_of(snapshot_, slice)));
      if (never_negative_) live.clamp_min_(0);
    }
  }

 private:
  const std::vector<Flat> live_;
  const std::vector<Flat> average_;   // the copy that is averaged
  const std::vector<Flat> snapshot_;  // what it was copied from
  const bool never_negative_;
};

}  // namespace

std::unique_ptr<TakeOver> replace_by_average(const std::vector<Flat>& live) { return std::make_unique<Replace>(live); }

std::unique_ptr<TakeOver> add_correction(const std::vector<Flat>& live, bool never_negative) {
  return std::make_unique<AddCorrection>(live, never_negative);
}

}  // namespace dssync
