// World::agree: every worker compares what it has with rank 0's; the last one to do so tells all the outcome.
// World::common: the last one to tell its lines finds those that all have.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "dssync/comm/store.h"
#include "dssync/comm/world.h"

namespace dssync {
namespace {

constexpr std::int64_t kMostDifferences = 8;  // that a message lists

std::string joined(const std::vector<std::string>& lines) {
  std::string result;
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

std::vector<std::string> World::common(const std::string& topic, const std::vector<std::string>& lines) {
  const std::string key = fmt::format("dssync/agree/{}", agreements_++);
  put_text(*store_, fmt::format("{}/{}", key, rank()), "=" + joined(lines));
  if (store_->add(key + "/count", 1) == size()) {
    std::vector<std::string> shared = split(get_text(*store_, key + "/0").substr(1));
    for (Rank other = 1; other < size(); ++other) {
      const std::vector<std::string> theirs = split(get_text(*store_, fmt::format("{}/{}", key, other)).substr(1));
      const std::set<std::string> known(theirs.begin(), theirs.end());
      std::erase_if(shared, [&known](const std::string& line) { return !known.contains(line); });
    }
    put_text(*store_, key + "/outcome", "=" + joined(shared));
  }
  await(key + "/outcome", fmt::format("comparing the {} with the other workers", topic), key);
  return split(get_text(*store_, key + "/outcome").substr(1));
}

void World::agree(const std::string& topic, const std::vector<std::string>& lines) {
  const std::string key = fmt::format("dssync/agree/{}", agreements_++);
  const std::string doing = fmt::format("comparing the {} with the other workers", topic);
  put_text(*store_, fmt::format("{}/{}", key, rank()), "here");
  if (rank() == 0) put_text(*store_, key + "/reference", joined(lines));
  await(key + "/reference", doing, key);

  const std::string mine = difference(lines, split(get_text(*store_, key + "/reference")), rank());
  if (!mine.empty()) {
    const std::int64_t number = store_->add(key + "/differences", 1);
    if (number <= kMostDifferences) put_text(*store_, fmt::format("{}/difference/{}", key, number), mine);
  }
  if (store_->add(key + "/count", 1) == size()) {
    std::string outcome;
    const std::int64_t count = store_->add(key + "/differences", 0);
    for (std::int64_t number = 1; number <= std::min(count, kMostDifferences); ++number) {
      outcome += (number == 1 ? "" : "; ") + get_text(*store_, fmt::format("{}/difference/{}", key, number));
    }
    if (count > kMostDifferences) outcome += fmt::format("; and {} more", count - kMostDifferences);
    put_text(*store_, key + "/outcome", "=" + outcome);
  }
  await(key + "/outcome", doing, key);
  const std::string outcome = get_text(*store_, key + "/outcome").substr(1);
  if (!outcome.empty()) {
    throw AgreementError(fmt::format("rank {}: the workers differ in their {}: {}", rank(), topic, outcome));
  }
}

}  // namespace dssync
