// What probes tell about links. Rates by hand.
#include "dssync/monitor/probe_result.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/monitor/testing.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::two_racks;

using testing::kMegabit;

// Of 0.1 MB, which take 4 ms on a free link.
ProbeSample probe(Rank from, Rank to, double milliseconds, int turn = 0) {
  return {7, from, to, 1e5, milliseconds / 1e3, turn};
}

std::map<std::string, double> proven(const std::vector<ProbeSample>& probes) {
  const Topology topology = two_racks(200);
  std::map<std::string, double> result;
  const std::vector<double> rates = proven_by_probes(probes, topology);
  for (std::size_t link = 0; link < rates.size(); ++link) {
    if (rates[link] > 0) result[topology.links()[link].name] = rates[link] / kMegabit;
  }
  return result;
}

std::map<std::string, double> slow(const std::vector<ProbeSample>& probes, const Topology& network) {
  std::map<std::string, double> result;
  for (const SlowTransfer& transfer : slow_transfers(probes, network, 3)) {
    for (const auto& [link, capacity] : transfer.path) result[network.link(link).name] = capacity / kMegabit;
  }
  return result;
}

TEST(ProbeResultTest, TheBestTurnCountsAndTheShorterDurationOfTwo) {
  EXPECT_THAT(proven({probe(0, 1, 40, 0), probe(0, 1, 10, 1), probe(0, 1, 8, 1), probe(0, 1, 20, 2)}),
              ElementsAre(Pair("rack0-0 out", 100), Pair("rack0-1 in", 100)));
}

TEST(ProbeResultTest, TransfersOfOneTurnAddUpOnALinkThatTheyShare) {
  const auto rates = proven({probe(0, 4, 10), probe(1, 5, 16)});
  EXPECT_EQ(rates.at("rack0-0 out"), 80);
  EXPECT_EQ(rates.at("rack0-1 out"), 50);
  EXPECT_EQ(rates.at("rack0 up"), 100);  // both, in the longer time
}

TEST(ProbeResultTest, NonsenseProvesNothing) {
  EXPECT_THAT(proven({probe(0, 99, 10), probe(-1, 1, 10)}), IsEmpty());
  EXPECT_THAT(slow({probe(0, 99, 1000)}, two_racks(200)), IsEmpty());
}

TEST(ProbeResultTest, ATransferIsSlowIfItBroughtMuchLessThanItsPathAllows) {
  EXPECT_THAT(slow({probe(0, 1, 11.9)}, two_racks(200)), IsEmpty());
  EXPECT_THAT(slow({probe(0, 1, 40, 0), probe(0, 1, 16, 1)}, two_racks(200)),
              ElementsAre(Pair("rack0-0 out", 50), Pair("rack0-1 in", 50)));
  // As fast as the core is said to be.
  EXPECT_THAT(slow({probe(0, 4, 40)}, two_racks(25)), IsEmpty());
}

TEST(ProbeResultTest, TransfersThatShareALinkHaveAPartOfItEach) {
  EXPECT_THAT(slow({probe(0, 4, 11), probe(1, 5, 11)}, two_racks(200)), IsEmpty());
  const auto found = slow({probe(0, 4, 80), probe(1, 5, 80)}, two_racks(200));
  EXPECT_EQ(found.at("rack0-0 out"), 10);
  EXPECT_EQ(found.at("rack0 up"), 20);
}

}  // namespace
}  // namespace dssync
