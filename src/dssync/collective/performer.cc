#include "dssync/collective/performer.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace dssync {
namespace {

void copy_back(const CutAverage& average) {
  std::int64_t begin = 0;
  for (const at::Tensor& slice : average.slices) {
    slice.copy_(average.joined.narrow(0, begin, slice.numel()));
    begin += slice.numel();
  }
}

// Ends a work that nobody watches.
void give_up(ChannelType& channel, c10d::Work& work) {
  cut(channel);
  try {
    work.wait();
  } catch (const std::exception&) {
    return;  // as expected
  }
}

}  // namespace

void Performer::admit(CutAverage average) {
  forget_broken_channels();
  const AverageId id = average.id;
  Average& admitted = averages_[id];
  admitted.cut = std::move(average);
  admitted.unfinished = admitted.cut.pieces.size();
  if (admitted.unfinished == 0) return end(admitted);
  for (const at::Tensor& vector : admitted.cut.pieces) admit_item(admitted.cut, vector);
}

void Performer::admit_item(const CutAverage& average, const at::Tensor& vector) {
  Item item{average.id, {}};
  Agenda::Course course{{}, average.chain->urgency, average.chain->slowest};
  for (const std::vector<Step>& steps : average.chain->phases) {
    std::vector<StepOfItem>& phase = item.phases.emplace_back();
    std::vector<Agenda::Operation>& operations = course.phases.emplace_back();
    for (const Step& step : steps) {
      SlicedVector slices = slice_for(step, vector);
      if (slices.empty()) continue;
      const Seconds seconds(static_cast<double>(vector.nbytes()) * step.seconds_per_byte);
      operations.push_back({step.channel.get(), most_at_once(seconds)});
      phase.push_back({&step, slices, make_operation(step, slices)});
    }
  }
  items_.emplace(agenda_.add(std::move(course)), std::move(item));
}

void Performer::start_ready() {
  while (const std::optional<Agenda::OperationId> id = agenda_.next()) begin(*id);
}

void Performer::begin(const Agenda::OperationId& id) {
  StepOfItem& step = at(id);
  step.start = Clock::now();
  try {
    step.work = step.operation->start(*step.step->channel);
    watch_(id, *step.work);
  } catch (...) {
    const Agenda::Cause cause = note_failure(step.step->members);
    if (step.work) give_up(*step.step->channel, *step.work);
    agenda_.fail(id, cause);
  }
}

void Performer::complete(const Agenda::OperationId& id, Clock::time_point end) {
  if (!await(id)) return;
  account(id, end);
  finish(id);
}

// Whether the messages have arrived.
bool Performer::await(const Agenda::OperationId& id) {
  StepOfItem& step = at(id);
  try {
    in_channel([&] { step.work->wait(); });
    return true;
  } catch (...) {
    if (agenda_.is_broken(id)) {
      agenda_.done(id);  // one failure has been noted; the others follow from it
    } else {
      agenda_.fail(id, note_failure(step.step->members));
    }
    return false;
  }
}

void Performer::finish(const Agenda::OperationId& id) {
  StepOfItem& step = at(id);
  const Chain& chain = *averages_.at(items_.at(id.item).average).cut.chain;
  try {
    if (!agenda_.is_void(id.item)) step.operation->finish(id.phase + 1 == chain.reduced_after ? chain.group_size : 1);
  } catch (...) {
    return agenda_.drop(id, note_failure(step.step->members));
  }
  step.work = Work();
  agenda_.done(id);
}

void Performer::account(const Agenda::OperationId& id, Clock::time_point end) {
  const StepOfItem& step = at(id);
  const CutAverage& average = averages_.at(items_.at(id.item).average).cut;
  const std::int64_t bytes = bytes_sent(*step.step, step.slices);
  progress_.bytes_sent += bytes;
  if (step.step->stage >= 0) progress_.stage_uses.push_back({step.step->stage, step.start, end, bytes});
  if (timeline_ == nullptr) return;
  timeline_->record({.kind = Span::Kind::kStage,
                     .name = name_of(step.step->kind),
                     .iteration = average.iteration,
                     .start = step.start,
                     .end = end,
                     .round = average.chain->round,
                     .members = step.step->members,
                     .bytes = bytes});
}

// Of the exception that is being handled.
Agenda::Cause Performer::note_failure(const std::vector<Rank>& members) {
  Failure failure{next_cause_++, std::current_exception()};
  try {
    throw;
  } catch (const ChannelFailure& error) {
    failure.symptom = error.what();
    failure.members = members;
  } catch (...) {
    // It is told as it is.
  }
  progress_.breakages.push_back({failure});
  return failure.cause;
}

Progress Performer::take_progress() {
  for (const auto& [item, cause] : agenda_.take_void()) {
    Average& average = averages_.at(items_.at(item).average);
    average.is_void = true;
    progress_.voids.emplace_back(average.cut.id, cause);
  }
  for (const auto& [key, cause] : agenda_.take_broken()) {
    broken_.push_back(Channel::reclaim_copy(static_cast<ChannelType*>(const_cast<void*>(key))));
    note_broken(broken_.back(), cause);
  }
  end_items();
  return std::exchange(progress_, {});
}

void Performer::note_broken(const Channel& channel, Agenda::Cause cause) {
  for (Breakage& breakage : progress_.breakages) {
    if (breakage.failure && breakage.failure->cause == cause) return breakage.channels.push_back(channel);
  }
  progress_.breakages.push_back({std::nullopt, {channel}});
}

void Performer::end_items() {
  for (const Agenda::Ending& ending : agenda_.take_ended()) {
    const auto item = items_.find(ending.item);
    Average& average = averages_.at(item->second.average);
    items_.erase(item);
    if (--average.unfinished == 0) end(average);
  }
}

void Performer::end(Average& average) {
  const AverageId id = average.cut.id;
  try {
    if (!average.is_void) copy_back(average.cut);
  } catch (...) {
    progress_.voids.emplace_back(id, note_failure({}));
  }
  progress_.ended.push_back(id);
  averages_.erase(id);
}

void Performer::forget_broken_channels() {
  std::erase_if(broken_, [this](const Channel& channel) {
    const bool is_last = channel.use_count() == 1;
    if (is_last) agenda_.forget(channel.get());
    return is_last;
  });
}

std::vector<Channel> Performer::channels() const {
  std::vector<Channel> result;
  for (const auto& [id, average] : averages_) {
    for (const std::vector<Step>& phase : average.cut.chain->phases) {
      for (const Step& step : phase) result.push_back(step.channel);
    }
  }
  return result;
}

}  // namespace dssync
