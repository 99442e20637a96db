#include "dssync/collective/performer.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "dssync/codec/encoding.h"
#include "dssync/collective/operations/coded.h"

namespace dssync {
namespace {

void copy_back(const CutAverage& average) {
  std::int64_t begin = 0;
  for (const at::Tensor& slice : average.slices) {
    slice.copy_(average.joined.narrow(0, begin, slice.numel()));
    begin += slice.numel();
  }
}

// Of every piece of a run another one, and the same in every run and on all members.
std::uint64_t seed_of(const CutAverage& average, std::size_t piece) {
  return mix_seeds(mix_seeds(static_cast<std::uint64_t>(average.iteration), average.travel.label), piece);
}

// Of every operation on it another one, on every member.
std::uint64_t seed_of(std::uint64_t piece, std::size_t phase, const Step& step) {
  const Rank rank = step.members[static_cast<std::size_t>(step.index)];
  const auto first = static_cast<std::uint64_t>(step.members.front());
  return mix_seeds(mix_seeds(mix_seeds(piece, phase + 1), first), static_cast<std::uint64_t>(rank));
}

// The elements of a piece in something like the one slice that it is of.
at::Tensor like_piece(const at::Tensor& whole, const CutAverage& average, const at::Tensor& piece) {
  if (!whole.defined()) return whole;
  const std::int64_t begin = piece.storage_offset() - average.pieces.front().storage_offset();
  return whole.narrow(0, begin, piece.numel());
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
  for (std::size_t piece = 0; piece < admitted.cut.pieces.size(); ++piece) admit_item(admitted.cut, piece);
}

void Performer::admit_item(const CutAverage& average, std::size_t piece) {
  const at::Tensor& vector = average.pieces[piece];
  const Chain& chain = *average.chain;
  const at::Tensor lost = like_piece(average.travel.lost, average, vector);
  const bool has_codecs =
      chain.has_codecs && codec_for(vector, Codec::kInt4, average.travel.shortest) != Codec::kFloat32;
  const Codec result_codec = codec_for(vector, chain.result_codec, average.travel.shortest);
  Item item{average.id, {}};
  if (result_codec != Codec::kFloat32) {
    item.result = std::make_unique<CodedResult>(vector, result_codec, seed_of(average, piece), lost);
  }
  Agenda::Course course{{}, chain.urgency, chain.slowest};
  for (const std::vector<Step>& steps : chain.phases) {
    const std::size_t number = item.phases.size();
    std::vector<StepOfItem>& phase = item.phases.emplace_back();
    std::vector<Agenda::Operation>& operations = course.phases.emplace_back();
    for (const Step& step : steps) {
      SlicedVector slices = slice_for(step, vector, has_codecs ? kCodecBlock : 1);
      if (slices.empty()) continue;
      const Seconds seconds(static_cast<double>(vector.nbytes()) * step.seconds_per_byte);
      operations.push_back({step.channel.get(), most_at_once(seconds)});
      const bool is_gather = step.kind == Stage::Kind::kAllGather;
      const Codec codec = is_gather ? result_codec : codec_for(vector, step.codec, average.travel.shortest);
      const SlicedVector moved = is_gather && item.result ? item.result->slices_of_bytes(slices) : slices;
      const Coding coding{codec, seed_of(seed_of(average, piece), number, step), lost};
      phase.push_back({&step, slices, codec, make_operation(step, moved, coding)});
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
  const Item& item = items_.at(id.item);
  const Chain& chain = *averages_.at(item.average).cut.chain;
  const bool completes = id.phase + 1 == chain.reduced_after;
  try {
    if (!agenda_.is_void(id.item)) {
      step.operation->finish(completes ? chain.group_size : 1);
      if (completes && item.result) {
        const bool is_shared = step.step->kind == Stage::Kind::kAllReduce;
        item.result->encode_sums(step.slices, chain.group_size,
                                 is_shared ? static_cast<int>(step.step->members.size()) : 1);
      }
    }
  } catch (...) {
    return agenda_.drop(id, note_failure(step.step->members));
  }
  step.work = Work();
  agenda_.done(id);
}

void Performer::account(const Agenda::OperationId& id, Clock::time_point end) {
  const StepOfItem& step = at(id);
  const CutAverage& average = averages_.at(items_.at(id.item).average).cut;
  const std::int64_t bytes = bytes_sent(*step.step, step.slices, step.codec);
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
    try {
      if (!ending.is_void && item->second.result) item->second.result->decode_all();
    } catch (...) {
      average.is_void = true;
      progress_.voids.emplace_back(average.cut.id, note_failure({}));
    }
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
