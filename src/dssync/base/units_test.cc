// What people write as quantities, and what they are shown.
#include "dssync/base/units.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename Parse>
std::string message_of(Parse parse, std::string_view text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(UnitsTest, BandwidthInBitsIsAnEighthInBytes) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("50Mbps").bytes_per_second, 6.25e6);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1.5 Gbps").bytes_per_second, 187.5e6);
  EXPECT_DOUBLE_EQ(parse_bandwidth("200Mbit/s").bytes_per_second, 25e6);
  EXPECT_DOUBLE_EQ(parse_bandwidth("8bps").bytes_per_second, 1);
  EXPECT_DOUBLE_EQ(parse_bandwidth("8kbps").bytes_per_second, 1000);
  EXPECT_DOUBLE_EQ(parse_bandwidth("8Kbps").bytes_per_second, 1000);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1.6Tbps").bytes_per_second, 2e11);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1e3Mbps").bytes_per_second, 125e6);
}

TEST(UnitsTest, BandwidthInBytes) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("25MB/s").bytes_per_second, 25e6);
  EXPECT_DOUBLE_EQ(parse_bandwidth("25MBps").bytes_per_second, 25e6);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1MiB/s").bytes_per_second, 1048576);
}

TEST(UnitsTest, SpacesAroundAQuantityAreAllowed) {
  EXPECT_DOUBLE_EQ(parse_bandwidth(" 50 Mbps ").bytes_per_second, 6.25e6);
  EXPECT_EQ(parse_bytes("512 KiB"), 524288);
  EXPECT_DOUBLE_EQ(parse_duration("20 ms").count(), 0.02);
}

TEST(UnitsTest, BandwidthThatIsRefused) {
  EXPECT_THAT(message_of(parse_bandwidth, "50"), AllOf(HasSubstr("\"50\" has no unit"), HasSubstr("50Mbps")));
  EXPECT_THAT(message_of(parse_bandwidth, "0Mbps"), HasSubstr("is zero"));
  EXPECT_THAT(message_of(parse_bandwidth, "-5Mbps"), HasSubstr("is negative"));
  EXPECT_THAT(message_of(parse_bandwidth, ""), HasSubstr("is empty"));
  EXPECT_THAT(message_of(parse_bandwidth, "   "), HasSubstr("is empty"));
  EXPECT_THAT(message_of(parse_bandwidth, "fast"), HasSubstr("is not a number"));
  EXPECT_THAT(message_of(parse_bandwidth, "nan Mbps"), HasSubstr("is not a number"));
  EXPECT_THAT(message_of(parse_bandwidth, "inf Mbps"), HasSubstr("is not a number"));
  EXPECT_THAT(message_of(parse_bandwidth, ".Mbps"), HasSubstr("is not a number"));
  EXPECT_THAT(message_of(parse_bandwidth, "1e999Mbps"), HasSubstr("is out of range"));
  EXPECT_THAT(message_of(parse_bandwidth, "1e308Gbps"), HasSubstr("is above"));
  EXPECT_THAT(message_of(parse_bandwidth, "0.5bps"), HasSubstr("is below"));
  EXPECT_THAT(message_of(parse_bandwidth, "50mbps"), AllOf(HasSubstr("unknown unit \"mbps\""), HasSubstr("capitals")));
  EXPECT_THAT(message_of(parse_bandwidth, "50MB"), HasSubstr("unknown unit"));
  EXPECT_THAT(message_of(parse_bandwidth, "0x10Mbps"), HasSubstr("unknown unit"));
  EXPECT_THAT(message_of(parse_bandwidth, "1,000Mbps"), HasSubstr("unknown unit"));
}

TEST(UnitsTest, Bytes) {
  EXPECT_EQ(parse_bytes("1B"), 1);
  EXPECT_EQ(parse_bytes("8MB"), 8'000'000);
  EXPECT_EQ(parse_bytes("1.1MB"), 1'100'000);
  EXPECT_EQ(parse_bytes("3GiB"), 3'221'225'472);
  EXPECT_EQ(parse_bytes("9007199254740992B"), 9'007'199'254'740'992);
}

TEST(UnitsTest, BytesThatAreRefused) {
  EXPECT_THAT(message_of(parse_bytes, "8"), HasSubstr("has no unit"));
  EXPECT_THAT(message_of(parse_bytes, "0B"), HasSubstr("is zero"));
  EXPECT_THAT(message_of(parse_bytes, "-1MB"), HasSubstr("is negative"));
  EXPECT_THAT(message_of(parse_bytes, "1.5B"), HasSubstr("is not a whole number"));
  EXPECT_THAT(message_of(parse_bytes, "0.1B"), HasSubstr("is not a whole number"));
  EXPECT_THAT(message_of(parse_bytes, "10PB"), HasSubstr("is above"));
  EXPECT_THAT(message_of(parse_bytes, "8Mb"), HasSubstr("unknown unit"));
}

TEST(UnitsTest, Durations) {
  EXPECT_DOUBLE_EQ(parse_duration("0s").count(), 0);
  EXPECT_DOUBLE_EQ(parse_duration("20ms").count(), 0.02);
  EXPECT_DOUBLE_EQ(parse_duration("50us").count(), 50e-6);
  EXPECT_DOUBLE_EQ(parse_duration("50\u00B5s").count(), 50e-6);
  EXPECT_DOUBLE_EQ(parse_duration("7ns").count(), 7e-9);
  EXPECT_DOUBLE_EQ(parse_duration("1.5min").count(), 90);
}

TEST(UnitsTest, DurationsThatAreRefused) {
  EXPECT_THAT(message_of(parse_duration, "20"), HasSubstr("has no unit"));
  EXPECT_THAT(message_of(parse_duration, "0"), HasSubstr("has no unit"));
  EXPECT_THAT(message_of(parse_duration, "-1ms"), HasSubstr("is negative"));
  EXPECT_THAT(message_of(parse_duration, "1e10s"), HasSubstr("is above"));
  EXPECT_THAT(message_of(parse_duration, "infs"), HasSubstr("is not a number"));
  EXPECT_THAT(message_of(parse_duration, "20Ms"), HasSubstr("unknown unit"));
}

TEST(UnitsTest, FormatsWithThreeDigitsAndAFittingPrefix) {
  EXPECT_EQ(format_bandwidth({6.25e6}), "50 Mbit/s");
  EXPECT_EQ(format_bandwidth({156.25e6}), "1.25 Gbit/s");
  EXPECT_EQ(format_bytes(8e6), "8 MB");
  EXPECT_EQ(format_bytes(1.6e6), "1.6 MB");
  EXPECT_EQ(format_bytes(12), "12 B");
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_duration(Seconds(0.34)), "340 ms");
  EXPECT_EQ(format_duration(Seconds(1.28)), "1.28 s");
  EXPECT_EQ(format_duration(Seconds(50e-6)), "50 us");
  EXPECT_EQ(format_duration(Seconds(0)), "0 s");
}

TEST(UnitsTest, RoundingUpMovesToTheNextPrefix) {
  EXPECT_EQ(format_bytes(999'499), "999 kB");
  EXPECT_EQ(format_bytes(999'999), "1 MB");
  EXPECT_EQ(format_duration(Seconds(0.99999)), "1 s");
}

TEST(UnitsTest, LargeTimesKeepAllTheirDigitsInsteadOfAnExponent) {
  EXPECT_EQ(format_duration(Seconds(3600)), "3600 s");
  EXPECT_EQ(format_duration(Seconds(999.7)), "1000 s");
}

}  // namespace
}  // namespace dssync
