// agree: every worker compares what it has with rank 0's; the last one to do so tells all the outcome.
// common: the last one to tell its lines finds those that all have.
#include "dssync/comm/agreement.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "dssync/comm/c10d/store.h"
#include "dssync/comm/errors.h"

namespace dssync {
namespace {

constexpr std::int64_t kMostDifferences = 8;  // that a message lists

// The lines, after `mark`.
std::string joined(const std::vector<std::string>& lines, std::string mark = "") {
  std::string result = std::move(mark);
  for (const std::string& line : lines) result += line + '\n';
  return result;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> result;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    result.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return result;
}

std::string line_or_nothing(const std::vector<std::string>& lines, std::size_t index) {
  return index < lines.size() ? "'" + lines[index] + "'" : "nothing";
}

// "rank 3 has 'fc.weight float32 [10, 5]' where rank 0 has 'fc.weight float32 [10, 6]'"; empty where they are the same.
std::string difference(const std::vector<std::string>& mine, const std::vector<std::string>& reference, Rank rank) {
  const std::size_t size = std::max(mine.size(), reference.size());
  for (std::size_t index = 0; index < size; ++index) {
    const std::string here = line_or_nothing(mine, index);
    const std::string there = line_or_nothing(reference, index);
    if (here != there) return fmt::format("rank {} has {} where rank 0 has {}", rank, here, there);
  }
  return "";
}

}  // namespace

Agreement::Agreement(Waiting waiting) : waiting_(std::move(waiting)), store_(*waiting_.store) {}

std::string Agreement::next_key() { return fmt::format("agree/{}", agreements_++); }

bool Agreement::is_last(const std::string& key) { return store_.add(key + "/count", 1) == waiting_.size; }

void Agreement::barrier(const std::string& name) {
  const std::string key = fmt::format("barrier/{}", name);
  put_text(store_, fmt::format("{}/{}", key, waiting_.rank), "here");
  if (is_last(key)) put_text(store_, key + "/all", "here");
  await(waiting_, key + "/all", fmt::format("waiting at '{}'", name), key);
}

std::vector<std::string> Agreement::common(const std::string& topic, const std::vector<std::string>& lines) {
  const std::string key = next_key();
  put_text(store_, fmt::format("{}/{}", key, waiting_.rank), joined(lines, "="));
  if (is_last(key)) {
    std::vector<std::string> shared = split(get_text(store_, key + "/0").substr(1));
    for (Rank other = 1; other < waiting_.size; ++other) {
      const std::vector<std::string> theirs = split(get_text(store_, fmt::format("{}/{}", key, other)).substr(1));
      const std::set<std::string> known(theirs.begin(), theirs.end());
      std::erase_if(shared, [&known](const std::string& line) { return !known.contains(line); });
    }
    put_text(store_, key + "/outcome", joined(shared, "="));
  }
  await(waiting_, key + "/outcome", fmt::format("comparing the {} with the other workers", topic), key);
  return split(get_text(store_, key + "/outcome").substr(1));
}

void Agreement::agree(const std::string& topic, const std::vector<std::string>& lines) {
  const std::string key = next_key();
  const std::string doing = fmt::format("comparing the {} with the other workers", topic);
  put_text(store_, fmt::format("{}/{}", key, waiting_.rank), "here");
  if (waiting_.rank == 0) put_text(store_, key + "/reference", joined(lines));
  await(waiting_, key + "/reference", doing, key);

  const std::string mine = difference(lines, split(get_text(store_, key + "/reference")), waiting_.rank);
  if (!mine.empty()) {
    const std::int64_t number = store_.add(key + "/differences", 1);
    if (number <= kMostDifferences) put_text(store_, fmt::format("{}/difference/{}", key, number), mine);
  }
  if (is_last(key)) {
    std::string outcome;
    const std::int64_t count = store_.add(key + "/differences", 0);
    for (std::int64_t number = 1; number <= std::min(count, kMostDifferences); ++number) {
      outcome += (number == 1 ? "" : "; ") + get_text(store_, fmt::format("{}/difference/{}", key, number));
    }
    if (count > kMostDifferences) outcome += fmt::format("; and {} more", count - kMostDifferences);
    put_text(store_, key + "/outcome", "=" + outcome);
  }
  await(waiting_, key + "/outcome", doing, key);
  const std::string outcome = get_text(store_, key + "/outcome").substr(1);
  if (!outcome.empty()) {
    throw AgreementError(fmt::format("rank {}: the workers differ in their {}: {}", waiting_.rank, topic, outcome));
  }
}

}  // namespace dssync
