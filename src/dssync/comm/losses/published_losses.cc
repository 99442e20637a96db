#include "dssync/comm/losses/published_losses.h"

#include <sstream>

#include <fmt/format.h>

#include "dssync/comm/c10d/store.h"

namespace dssync {
namespace {

constexpr const char* kCount = "losses/count";
std::string key_of(std::int64_t number) { return fmt::format("losses/{}", number); }

Loss parse(const std::string& text) {
  std::istringstream stream(text);
  Loss loss;
  stream >> loss.rank >> loss.told_by;
  stream.get();  // the space
  std::getline(stream, loss.description, '\0');
  return loss;
}

}  // namespace

void publish_loss(const Store& store, Rank rank, const std::string& description) {
  publish(*store, {rank, Loss::kLauncher, description});
}

void publish(c10d::Store& store, const Loss& loss) {
  const std::int64_t number = store.add(kCount, 1);
  put_text(store, key_of(number), fmt::format("{} {} {}", loss.rank, loss.told_by, loss.description));
}

std::vector<Loss> PublishedLosses::read(c10d::Store& store) {
  const std::int64_t count = store.add(kCount, 0);
  while (counted_ < count) unread_.insert(++counted_);
  std::vector<Loss> losses;
  for (auto number = unread_.begin(); number != unread_.end();) {
    const std::string key = key_of(*number);
    if (store.check({key})) {
      losses.push_back(parse(get_text(store, key)));
      number = unread_.erase(number);
    } else {
      ++number;
    }
  }
  return losses;
}

}  // namespace dssync
