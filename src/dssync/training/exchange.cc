// Every call has a name of its own in the store, so that a fast worker never reads what is left from an earlier one.
#include "dssync/training/exchange.h"

#include <fmt/format.h>

#include "dssync/comm/c10d/store.h"

namespace dssync {
template <typename Work>
auto Exchange::explained(const std::string& what, Work work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw world_.explain(what, world_.everyone(), error.what());
  }
}

Exchange::Exchange(World& world) : world_(world) {
  explained("counting the runs", [&] {
    // Each worker counts for itself; as all make the same calls, all come to the same number.
    number_ = world_.store()->add(fmt::format("training/exchanges/{}", world_.rank()), 1);
  });
}

std::string Exchange::next_name(const std::string& what) { return fmt::format("{} ({}.{})", what, number_, ++calls_); }

std::vector<std::string> Exchange::gather(const std::string& what, const std::string& mine) {
  const std::string name = next_name(what);
  const auto key_of = [&name](int rank) { return fmt::format("training/{}/{}", name, rank); };
  return explained(what, [&] {
    const Store& store = world_.store();
    put_text(*store, key_of(world_.rank()), mine);
    world_.barrier(name);
    std::vector<std::string> all;
    for (int rank = 0; world_.rank() == 0 && rank < world_.size(); ++rank) {
      all.push_back(get_text(*store, key_of(rank)));
      store->deleteKey(key_of(rank));  // it may be large
    }
    return all;
  });
}

std::string Exchange::broadcast(const std::string& what, const std::string& value) {
  const std::string name = next_name(what);
  const std::string key = "training/" + name;
  return explained(what, [&] {
    if (world_.rank() == 0) {
      put_text(*world_.store(), key, value);
      return value;
    }
    return get_text(*world_.store(), key);
  });
}

void Exchange::meet(const std::string& what) {
  explained(what, [&] { world_.barrier(next_name(what)); });
}

}  // namespace dssync
