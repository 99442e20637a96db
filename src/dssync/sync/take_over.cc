#include "dssync/sync/take_over.h"

#include <ATen/ATen.h>

namespace dssync {
namespace {

class Replace final : public TakeOver {
 public:
  explicit Replace(const std::vector<Flat>& live) : live_(live) {}

  const std::vector<Flat>& averaged() const override { return live_; }
  void prepare(const std::vector<FlatSlice>& /*slices*/) override {}
  std::optional<Move> move_of(const FlatSlice& /*slice*/) const override { return std::nullopt; }
  void apply(const std::vector<FlatSlice>& /*slices*/) override {}

 private:
  const std::vector<Flat> live_;
};

class ReplaceWhenDone final : public TakeOver {
 public:
  explicit ReplaceWhenDone(const std::vector<Flat>& live) : live_(live), average_(flat_like(live)) {}

  const std::vector<Flat>& averaged() const override { return average_; }
  void prepare(const std::vector<FlatSlice>& slices) override {
    for (const FlatSlice& slice : slices) stretch_of(average_, slice).copy_(stretch_of(live_, slice));
  }
  std::optional<Move> move_of(const FlatSlice& slice) const override {
    return Move{stretch_of(live_, slice), stretch_of(average_, slice)};
  }
  void apply(const std::vector<FlatSlice>& slices) override {
    for (const FlatSlice& slice : slices) stretch_of(live_, slice).copy_(stretch_of(average_, slice));
  }

 private:
  const std::vector<Flat> live_;
  const std::vector<Flat> average_;
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

  std::optional<Move> move_of(const FlatSlice& slice) const override {
    return Move{stretch_of(snapshot_, slice), stretch_of(average_, slice)};
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

std::unique_ptr<TakeOver> replace_when_done(const std::vector<Flat>& live) {
  return std::make_unique<ReplaceWhenDone>(live);
}

std::unique_ptr<TakeOver> add_correction(const std::vector<Flat>& live, bool never_negative) {
  return std::make_unique<AddCorrection>(live, never_negative);
}

}  // namespace dssync
