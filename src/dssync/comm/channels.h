// The process groups that this worker shares with others: made when first asked for, kept until they are released. What
// waits in one ends when it is cut (cuttable_group.h). Owned by World. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "dssync/comm/c10d/c10d.h"
#include "dssync/topology/topology.h"

namespace dssync {

class Liveness;

// Makes and connects the process group of `members`, in which this worker is number `index`, under a name that no other
// group has. Called by the members alone, in a thread of its own, which may outlive the World.
using ChannelFactory = std::function<Channel(const std::vector<Rank>& members, int index, const std::string& name)>;

class Channels {
 public:
  // `liveness` outlives this.
  Channels(Rank self, ChannelFactory factory, Liveness& liveness);

  // As World::channel. Throws PeerError at once, also while it connects, where a worker is lost.
  Channel get(const std::vector<Rank>& members, const std::string& use);

  // As World::release.
  void release(const Channel& channel);

  // Whatever waits in the groups that this worker shares with `rank` fails now. They stay broken.
  void cut_with(Rank rank) noexcept;

  // As World::abandon_channels.
  void abandon() noexcept;

 private:
  struct Entry {
    std::vector<Rank> members;
    Channel channel;
  };

  void require_all() const;
  Channel add(const std::string& name, Entry entry);

  const Rank self_;
  const ChannelFactory factory_;
  Liveness& liveness_;
  std::mutex mutex_;
  std::map<std::string, Entry> channels_;  // by name
  std::map<std::string, int> released_;    // how often, by name: names in the store are used once
  int generation_ = 0;                     // rises when all are given up
};

}  // namespace dssync
