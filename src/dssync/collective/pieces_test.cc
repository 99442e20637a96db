#include "dssync/collective/pieces.h"

#include <random>

#include <gtest/gtest.h>

namespace dssync {
namespace {

constexpr std::int64_t kFloat = 4;  // bytes
constexpr ChainShape kRing{.phases = 1, .seconds_per_byte = 1e-7};
constexpr ChainShape kPipeline{.phases = 3, .seconds_per_byte = 1e-7};

TEST(PiecesTest, ARingGetsEverythingInOnePiece) {
  const Cutting expected{false, {{0, 0, 10'000'000}}};
  EXPECT_EQ(cut_into_pieces({10'000'000}, kFloat, kRing, Seconds(10)), expected);
}

TEST(PiecesTest, SmallSlicesTravelAsOne) {
  const Cutting joined{true, {{0, 0, 60}}};
  EXPECT_EQ(cut_into_pieces({10, 20, 30}, kFloat, kRing, Seconds(0)), joined);
  // 256 KiB each on average are enough: 65536 floats.
  const Cutting apart{false, {{0, 0, 65536}, {1, 0, 65536}}};
  EXPECT_EQ(cut_into_pieces({65536, 65536}, kFloat, kRing, Seconds(0)), apart);
  EXPECT_TRUE(cut_into_pieces({65536, 65535}, kFloat, kRing, Seconds(0)).is_joined);
  EXPECT_FALSE(cut_into_pieces({1}, kFloat, kRing, Seconds(0)).is_joined);
}

// 12 MB take 1.2 s. They are all that the network has to do: twelve pieces of 250000 floats, and at both ends one that
// is cut again at a quarter.
TEST(PiecesTest, APipelineHasTwelvePiecesAndShortEnds) {
  std::vector<Piece> expected = {{0, 0, 62'500}, {0, 62'500, 250'000}};
  for (std::int64_t begin = 250'000; begin < 2'750'000; begin += 250'000) {
    expected.push_back({0, begin, begin + 250'000});
  }
  expected.push_back({0, 2'750'000, 2'937'500});
  expected.push_back({0, 2'937'500, 3'000'000});
  EXPECT_EQ(cut_into_pieces({3'000'000}, kFloat, kPipeline, Seconds(1.2)).pieces, expected);
}

TEST(PiecesTest, APipelineThatIsAPartOfAllHasFewerPieces) {
  // A third of what the network has to do: four pieces, and the two short ends.
  EXPECT_EQ(cut_into_pieces({3'000'000}, kFloat, kPipeline, Seconds(3.6)).pieces.size(), 6U);
}

TEST(PiecesTest, PiecesOfAPipelineAreWorthTheirCosts) {
  // 200 KB take 20 ms: four pieces of 5 ms, of 50 KB, which is too little for short ends.
  EXPECT_EQ(cut_into_pieces({50'000}, kFloat, kPipeline, Seconds(0)).pieces.size(), 4U);
  // 40 KB on a slow network: two pieces of at least 16 KiB.
  const ChainShape slow{.phases = 3, .seconds_per_byte = 1e-3};
  const Cutting two{false, {{0, 0, 5'000}, {0, 5'000, 10'000}}};
  EXPECT_EQ(cut_into_pieces({10'000}, kFloat, slow, Seconds(0)), two);
}

// What counts is what a message has on the wire: an eighth of the bytes is worth half as many pieces here.
TEST(PiecesTest, AreLongerInFewerBits) {
  const ChainShape coded{.phases = 3, .seconds_per_byte = 1e-7, .wire_share = 0.125};
  EXPECT_EQ(cut_into_pieces({50'000}, kFloat, coded, Seconds(0)).pieces.size(), 2U);
  EXPECT_TRUE(cut_into_pieces({65536, 65536}, kFloat, coded, Seconds(0)).is_joined);
}

TEST(PiecesTest, NothingGivesNoPieces) {
  EXPECT_TRUE(cut_into_pieces({}, kFloat, kRing, Seconds(0)).pieces.empty());
  EXPECT_TRUE(cut_into_pieces({0}, kFloat, kPipeline, Seconds(0)).pieces.empty());
  EXPECT_TRUE(cut_into_pieces({0, 0}, kFloat, kRing, Seconds(0)).pieces.empty());
}

TEST(PiecesTest, EveryElementIsInOnePiece) {
  std::mt19937 random(7);
  const auto below = [&random](int limit) { return std::uniform_int_distribution(0, limit - 1)(random); };
  for (int repeat = 0; repeat < 500; ++repeat) {
    std::vector<std::int64_t> elements(static_cast<std::size_t>(1 + below(4)));
    for (std::int64_t& count : elements) count = below(below(2) == 0 ? 100 : 2'000'000);
    const ChainShape chain{static_cast<std::size_t>(1 + below(3)), 1e-9 * (1 + below(1000))};
    const Cutting cutting = cut_into_pieces(elements, kFloat, chain, Seconds(0.001 * below(1000)));
    std::int64_t total = 0;
    for (const std::int64_t count : elements) total += count;
    if (cutting.is_joined) elements = {total};
    std::vector<std::int64_t> reached(elements.size(), 0);
    for (const Piece& piece : cutting.pieces) {
      EXPECT_EQ(piece.begin, reached[piece.slice]);
      EXPECT_LT(piece.begin, piece.end);
      reached[piece.slice] = piece.end;
    }
    EXPECT_EQ(reached, elements);
  }
}

}  // namespace
}  // namespace dssync
