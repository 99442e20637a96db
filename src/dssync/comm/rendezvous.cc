#include "dssync/comm/rendezvous.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "dssync/comm/arrivals.h"
#include "dssync/comm/c10d/store.h"
#include "dssync/comm/errors.h"

namespace dssync {
namespace {

using std::chrono::milliseconds;

constexpr const char* kRunKey = "dssync/run";  // the only key that belongs to no run

struct Announcement {
  RunId run;
  int size = 0;
};

std::optional<Announcement> read_announcement(c10d::Store& store) {
  if (!store.check({kRunKey})) return std::nullopt;
  std::istringstream text(get_text(store, kRunKey));
  Announcement found;
  text >> found.run.attempt >> found.size;
  text.get();  // the space
  std::getline(text, found.run.name);
  return found;
}

std::string store_name(const Candidate& candidate) {
  return candidate.store_place.empty() ? "the store" : "the store at " + candidate.store_place;
}

// Whether this is the candidate's run; false: an earlier attempt, so that rank 0 has not come yet.
bool belongs(const Candidate& candidate, const Announcement& found) {
  const RunId& own = candidate.run;
  const bool is_named = own.name.empty() || own.name == found.run.name;
  if (is_named && own.attempt > found.run.attempt) return false;
  if (!is_named || own.attempt < found.run.attempt) {
    const RunId told{own.name.empty() ? found.run.name : own.name, own.attempt};
    throw InputError(fmt::format("rank {} belongs to run {}, but {} serves run {}", candidate.rank, to_text(told),
                                 store_name(candidate), to_text(found.run)));
  }
  if (candidate.size != found.size) {
    throw InputError(fmt::format("rank {} was started as one of {} workers, but run {} has {}", candidate.rank,
                                 candidate.size, to_text(found.run), found.size));
  }
  return true;
}

std::string this_process() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("process {} on {}", getpid(), host.data());
}

constexpr const char* kServesStore = "serves the store";

// A line each: process, address, whether it serves the store.
std::string member_lines(const Candidate& candidate) {
  return fmt::format("{}\n{}\n{}\n", this_process(), candidate.address, candidate.serves_store ? kServesStore : "");
}

std::vector<Member> parse_members(const std::string& text) {
  std::vector<Member> members;
  std::istringstream lines(text);
  Member member;
  std::string serves;
  while (std::getline(lines, member.process) && std::getline(lines, member.address) && std::getline(lines, serves)) {
    member.serves_store = serves == kServesStore;
    members.push_back(member);
  }
  return members;
}

}  // namespace

void announce_run(c10d::Store& store, const RunId& run, int size) {
  put_text(store, kRunKey, fmt::format("{} {} {}", run.attempt, size, run.name));
}

RunId find_run(c10d::Store& store, const Candidate& candidate) {
  const auto deadline = std::chrono::steady_clock::now() + candidate.timeout;
  bool may_announce = candidate.rank == 0;
  for (milliseconds pause{1};; pause = std::min(2 * pause, milliseconds(100))) {
    const std::optional<Announcement> found = read_announcement(store);
    if (found && belongs(candidate, *found)) return found->run;
    if (may_announce) {
      may_announce = false;
      // Of two that come at once, one announces; the other compares.
      if (store.add(fmt::format("{}/claims/{}", kRunKey, candidate.run.attempt), 1) == 1) {
        const std::string& name = candidate.run.name;
        announce_run(store, {name.empty() ? make_run_name() : name, candidate.run.attempt}, candidate.size);
        continue;
      }
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      throw PeerError(fmt::format("rank {}: waiting for all {} workers: rank 0 did not come within {} s",
                                  candidate.rank, candidate.size,
                                  static_cast<double>(candidate.timeout.count()) / 1000));
    }
    std::this_thread::sleep_for(pause);
  }
}

Membership join_run(const Store& store, const RunId& run, const Candidate& candidate,
                    const std::function<std::string()>& losses) {
  const std::string place = fmt::format("join/{}", candidate.rank);
  if (store->add(place + "/times", 1) > 1) {
    const std::string other = store->check({place}) ? parse_members(get_text(*store, place)).front().process : "";
    throw InputError(fmt::format("rank {} has joined already{}: two workers were started with the same rank",
                                 candidate.rank, other.empty() ? "" : " as " + other));
  }
  put_text(*store, place, member_lines(candidate));
  // Each rank counts once, and all were told the same size.
  if (store->add("join/count", 1) == candidate.size) {
    std::string all;
    for (Rank rank = 0; rank < candidate.size; ++rank) all += get_text(*store, fmt::format("join/{}", rank));
    put_text(*store, "join/all", all);
  }
  await({store, candidate.rank, candidate.size, candidate.timeout, losses}, "join/all",
        fmt::format("waiting for all {} workers", candidate.size), "join");
  return {.run = run, .epoch = 0, .members = parse_members(get_text(*store, "join/all")), .topology = std::nullopt};
}

}  // namespace dssync
