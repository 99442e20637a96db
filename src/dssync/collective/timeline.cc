#include "dssync/collective/timeline.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dssync {
namespace {

constexpr int kTrainingTrack = 0;

double microseconds(Clock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

const char* category(Span::Kind kind) {
  switch (kind) {
    case Span::Kind::kCompute:
      return "compute";
    case Span::Kind::kStage:
      return "stage";
    case Span::Kind::kWait:
      return "wait";
    case Span::Kind::kChange:
      return "plan";
  }
  return "";
}

// As the inside of a JSON string.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') result += '\\';
    result += code < 0x20 ? fmt::format("\\u{:04x}", code) : std::string(1, letter);
  }
  return result;
}

std::string arguments(const Span& span) {
  std::string text = fmt::format("\"iteration\":{}", span.iteration);
  if (span.kind == Span::Kind::kStage) {
    text += fmt::format(",\"round\":{},\"bytes\":{},\"members\":[{}]", span.round, span.bytes,
                        fmt::join(span.members, ","));
  }
  return text;
}

std::string event(const Span& span, Rank rank, int track, Clock::time_point origin) {
  return fmt::format(R"({{"name":"{}","cat":"{}","ph":"X","pid":{},"tid":{},"ts":{:.1f},"dur":{:.1f},"args":{{{}}}}})",
                     escaped(span.name), category(span.kind), rank, track, microseconds(span.start - origin),
                     microseconds(span.end - span.start), arguments(span));
}

std::string label(const char* what, Rank rank, int track, const std::string& name) {
  return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", what, rank, track, name);
}

// Spans of one track must nest, and stages overlap freely: each goes to the first track that is free at its start.
class Tracks {
 public:
  int place(const Span& span) {
    for (std::size_t track = 0; track < busy_until_.size(); ++track) {
      if (busy_until_[track] <= span.start) {
        busy_until_[track] = span.end;
        return static_cast<int>(track) + 1;
      }
    }
    busy_until_.push_back(span.end);
    return static_cast<int>(busy_until_.size());
  }
  int count() const { return static_cast<int>(busy_until_.size()); }

 private:
  std::vector<Clock::time_point> busy_until_;
};

}  // namespace

void Timeline::record(Span span) {
  const std::lock_guard lock(mutex_);
  if (spans_.size() < capacity_) {
    spans_.push_back(std::move(span));
  } else {
    ++dropped_;
  }
}

std::vector<Span> Timeline::spans() const {
  const std::lock_guard lock(mutex_);
  return spans_;
}

std::size_t Timeline::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::string trace_events(const std::vector<Span>& spans, Rank rank, Clock::time_point origin) {
  std::vector<Span> sorted = spans;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  Tracks tracks;
  std::vector<std::string> events = {label("process_name", rank, kTrainingTrack, fmt::format("rank {}", rank)),
                                     label("thread_name", rank, kTrainingTrack, "training")};
  for (const Span& span : sorted) {
    const int track = span.kind == Span::Kind::kStage ? tracks.place(span) : kTrainingTrack;
    events.push_back(event(span, rank, track, origin));
  }
  for (int track = 1; track <= tracks.count(); ++track) {
    events.push_back(label("thread_name", rank, track, fmt::format("averages {}", track)));
  }
  return fmt::format("{}", fmt::join(events, ",\n"));
}

}  // namespace dssync
