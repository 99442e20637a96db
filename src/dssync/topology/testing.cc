// Networks for tests.
#include "dssync/topology/testing.h"

#include <algorithm>
#include <random>
#include <utility>

namespace dssync::testing {

Topology::SwitchSpec make_switch(std::string name, std::string parent, double uplink) {
  Topology::SwitchSpec spec;
  spec.name = std::move(name);
  spec.parent = std::move(parent);
  spec.uplink = {uplink};
  return spec;
}

Topology::HostSpec make_host(std::string name, std::string at, double nic, int workers) {
  Topology::HostSpec spec;
  spec.name = std::move(name);
  spec.switch_name = std::move(at);
  spec.nic = {nic};
  spec.workers = workers;
  return spec;
}

namespace {

using Switches = std::vector<Topology::SwitchSpec>;
using Hosts = std::vector<Topology::HostSpec>;

// Grows a random tree. std::mt19937 gives the same numbers everywhere; the standard distributions do not.
class Gardener {
 public:
  Gardener(unsigned seed, int most_workers) : random_(seed), left_(most_workers) {}

  Topology grow() {
    switches_.push_back(make_switch("root", "", 0));
    branch("root", between(1, 3));
    if (hosts_.empty()) {
      hosts_.push_back(make_host("only", "root", 1, 1));
    }
    for (std::size_t i = hosts_.size(); i-- > 1;) {
      std::swap(hosts_[i], hosts_[static_cast<std::size_t>(between(0, static_cast<int>(i)))]);
    }
    return Topology::build(switches_, hosts_, "random");
  }

 private:
  int between(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<unsigned>(most - least + 1));
  }
  double rate() { return 0.25 * between(1, 8); }

  void branch(const std::string& name, int levels) {
    const int parts = between(1, levels == 1 ? 9 : 5);
    for (int i = 0; i < parts && left_ > 0; ++i) {
      const std::string below = name + "." + std::to_string(i);
      if (levels == 1 || between(0, 9) == 0) {
        const int workers = std::min(left_, between(0, 3) == 0 ? between(1, 8) : 1);
        hosts_.push_back(make_host(below, name, between(0, 4) == 0 ? rate() : 1, workers));
        hosts_.back().latency = Seconds(between(0, 3) == 0 ? 0.01 * between(0, 5) : 0);
        left_ -= workers;
      } else {
        switches_.push_back(make_switch(below, name, rate() * between(1, 4)));
        switches_.back().latency = Seconds(between(0, 3) == 0 ? 0.05 * between(0, 5) : 0);
        branch(below, levels - 1);
      }
    }
  }

  std::mt19937 random_;
  int left_;
  Switches switches_;
  Hosts hosts_;
};

}  // namespace

Topology flat(int hosts, double nic) {
  Hosts specs;
  for (int i = 0; i < hosts; ++i) {
    specs.push_back(make_host("h" + std::to_string(i), "switch", nic, 1));
  }
  return Topology::build({make_switch("switch", "", 0)}, specs, "flat");
}

Topology hosts_with_nics(const std::vector<double>& nics) {
  Hosts hosts;
  for (std::size_t i = 0; i < nics.size(); ++i) hosts.push_back(make_host("h" + std::to_string(i), "s", nics[i]));
  return Topology::build({make_switch("s", "", 0)}, hosts, "test");
}

Topology racks(int racks, int hosts, double nic, double uplink, int workers_per_host) {
  Switches switches{make_switch("core", "", 0)};
  Hosts specs;
  for (int r = 0; r < racks; ++r) {
    const std::string rack = "rack" + std::to_string(r);
    switches.push_back(make_switch(rack, "core", uplink));
    for (int i = 0; i < hosts; ++i) {
      specs.push_back(make_host(rack + "-" + std::to_string(i), rack, nic, workers_per_host));
    }
  }
  return Topology::build(switches, specs, "racks");
}

Topology three_levels(int sites, int racks, int hosts, int workers, double nic, double rack_uplink,
                      double site_uplink) {
  Switches switches{make_switch("wan", "", 0)};
  Hosts specs;
  for (int s = 0; s < sites; ++s) {
    const std::string site = "site" + std::to_string(s);
    switches.push_back(make_switch(site, "wan", site_uplink));
    for (int r = 0; r < racks; ++r) {
      const std::string rack = site + "-rack" + std::to_string(r);
      switches.push_back(make_switch(rack, site, rack_uplink));
      for (int i = 0; i < hosts; ++i) {
        specs.push_back(make_host(rack + "-" + std::to_string(i), rack, nic, workers));
      }
    }
  }
  return Topology::build(switches, specs, "three levels");
}

Topology random_tree(unsigned seed, int most_workers) { return Gardener(seed, most_workers).grow(); }

}  // namespace dssync::testing
