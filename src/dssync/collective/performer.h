// Carries out what the agenda allows: makes the operations of averages, starts and finishes them, and says what came of
// it. Has no lock and no thread of its own: whoever drives (conductor.h) calls it. It must live until the last work
// that it has started has ended.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/collective/agenda.h"
#include "dssync/collective/engine.h"
#include "dssync/collective/operations/coded_result.h"
#include "dssync/collective/operations/operation.h"

namespace dssync {

// An average, cut into pieces. Where small slices were joined, the pieces are of `joined`, which is copied back to
// `slices` in the end.
struct CutAverage {
  AverageId id = 0;
  std::shared_ptr<const Chain> chain;  // which may have no other owner any more
  std::int64_t iteration = 0;
  std::vector<at::Tensor> pieces{};
  at::Tensor joined{};
  std::vector<at::Tensor> slices{};
  Travel travel{};
};

struct Failure {
  Agenda::Cause cause = 0;
  std::exception_ptr thrown;
  std::optional<std::string> symptom{};  // of a channel that failed; nothing where this worker failed itself
  std::vector<Rank> members{};
};

// Channels that are broken and have to be cut, once it is known why.
struct Breakage {
  std::optional<Failure> failure;  // nothing where it was handed over before
  std::vector<Channel> channels{};
};

// What came of driving for a while.
struct Progress {
  std::vector<Breakage> breakages;
  std::vector<std::pair<AverageId, Agenda::Cause>> voids;
  std::vector<AverageId> ended;
  std::int64_t bytes_sent = 0;
  std::vector<StageUse> stage_uses;
};

class Performer {
 public:
  // Called for each work that has been started; sees to it that complete() is called when it has ended.
  using Watch = std::function<void(const Agenda::OperationId& id, c10d::Work& work)>;

  // `timeline` may be null.
  Performer(Watch watch, Timeline* timeline) : watch_(std::move(watch)), timeline_(timeline) {}

  void admit(CutAverage average);
  void complete(const Agenda::OperationId& id, Clock::time_point end);
  void start_ready();
  Progress take_progress();

  // All that averages still use.
  std::vector<Channel> channels() const;

 private:
  struct StepOfItem {
    const Step* step = nullptr;
    SlicedVector slices;
    Codec codec = Codec::kFloat32;
    std::unique_ptr<Operation> operation{};
    Work work{};
    Clock::time_point start{};
  };
  struct Item {
    AverageId average = 0;
    std::vector<std::vector<StepOfItem>> phases;  // without steps that have nothing to move
    std::unique_ptr<CodedResult> result{};        // null where it is handed out as it is
  };
  struct Average {
    CutAverage cut;
    std::size_t unfinished = 0;  // pieces
    bool is_void = false;
  };

  void admit_item(const CutAverage& average, std::size_t piece);
  void begin(const Agenda::OperationId& id);
  bool await(const Agenda::OperationId& id);
  void finish(const Agenda::OperationId& id);
  void account(const Agenda::OperationId& id, Clock::time_point end);
  Agenda::Cause note_failure(const std::vector<Rank>& members);
  void note_broken(const Channel& channel, Agenda::Cause cause);
  void end_items();
  void end(Average& average);
  void forget_broken_channels();
  StepOfItem& at(const Agenda::OperationId& id) { return items_.at(id.item).phases[id.phase][id.index]; }

  const Watch watch_;
  Timeline* const timeline_;
  Agenda agenda_;
  std::map<Agenda::ItemId, Item> items_;
  std::map<AverageId, Average> averages_;
  std::vector<Channel> broken_;  // as long as somebody else could hand them in again
  Agenda::Cause next_cause_ = 0;
  Progress progress_;
};

}  // namespace dssync
