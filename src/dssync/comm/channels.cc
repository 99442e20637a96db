#include "dssync/comm/channels.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/comm/c10d/call_aside.h"
#include "dssync/comm/c10d/cuttable_group.h"
#include "dssync/comm/liveness.h"
#include "dssync/comm/ranks_text.h"

namespace dssync {

Channels::Channels(Rank self, ChannelFactory factory, Liveness& liveness)
    : self_(self), factory_(std::move(factory)), liveness_(liveness) {}

Channel Channels::get(const std::vector<Rank>& members, const std::string& use) {
  std::string name;
  std::string incarnation;
  {
    const std::lock_guard lock(mutex_);
    name = fmt::format("channel/{}/{}/{}", generation_, use, fmt::join(members, ","));
    const auto released = released_.find(name);
    if (released != released_.end()) incarnation = fmt::format("/{}", released->second);
    const auto known = channels_.find(name);
    if (known != channels_.end()) return known->second.channel;
  }
  const auto self = std::find(members.begin(), members.end(), self_);
  if (self == members.end()) throw Error(fmt::format("rank {} is no member of {}", self_, ranks_text(members)));
  try {
    const int index = static_cast<int>(self - members.begin());
    const auto make = [factory = factory_, members, index, full_name = name + incarnation] {
      return make_cuttable(factory(members, index, full_name));
    };
    return add(name, {members, call_aside(make, [this] { require_all(); })});
  } catch (const std::exception& error) {
    throw liveness_.explain("connecting with " + ranks_text(members), members, error.what());
  }
}

void Channels::require_all() const {
  const std::string lost = liveness_.losses();
  if (!lost.empty()) throw std::runtime_error(lost);
}

// Who is lost from now on finds the channel here to cut; who was lost before is asked for.
Channel Channels::add(const std::string& name, Entry entry) {
  Channel channel;
  {
    const std::lock_guard lock(mutex_);
    channel = channels_.emplace(name, std::move(entry)).first->second.channel;
  }
  try {
    require_all();
  } catch (const std::exception&) {
    cut_all({channel});
    throw;
  }
  return channel;
}

void Channels::release(const Channel& channel) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(channels_.begin(), channels_.end(),
                                  [&channel](const auto& known) { return known.second.channel == channel; });
  if (found == channels_.end()) return;  // given up
  ++released_[found->first];
  channels_.erase(found);
}

void Channels::cut_with(Rank rank) noexcept {
  std::vector<Channel> shared;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, entry] : channels_) {
      if (std::find(entry.members.begin(), entry.members.end(), rank) != entry.members.end()) {
        shared.push_back(entry.channel);
      }
    }
  }
  cut_all(shared);
}

void Channels::abandon() noexcept {
  std::vector<Channel> all;
  {
    const std::lock_guard lock(mutex_);
    ++generation_;
    for (const auto& [name, entry] : channels_) all.push_back(entry.channel);
    channels_.clear();
  }
  cut_all(all);
}

}  // namespace dssync
