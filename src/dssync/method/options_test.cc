#include "dssync/method/options.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> names_of(const SyncOptions& options) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_of(options)) names.push_back(name);
  return names;
}

std::string problem_of(const std::string& name, const std::string& text) {
  SyncOptions options;
  try {
    set_option(options, name, text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SyncOptionsTest, EveryMethodHasTheOptionsThatItLooksAt) {
  EXPECT_THAT(names_of({.method = Method::kBspRing}), ElementsAre("codec", "codec_rate", "bucket_bytes"));
  EXPECT_THAT(names_of({.method = Method::kAsp}), IsEmpty());
  EXPECT_THAT(names_of({.method = Method::kSsp}), ElementsAre("staleness"));
  EXPECT_THAT(names_of({.method = Method::kLocalSgd}),
              ElementsAre("codec", "codec_rate", "period", "overlap", "noise_correction", "sync_warmup_iterations"));
  EXPECT_THAT(names_of({}), ElementsAre("disagreement_limit", "group_limit", "published", "exact_inside", "adapt",
                                        "steer", "codec", "codec_rate", "overlap", "state", "state_period",
                                        "noise_correction", "sync_warmup_iterations"));
}

TEST(SyncOptionsTest, APlanThatIsGivenNeedsNoOptionsOfPlanning) {
  EXPECT_THAT(names_of({.plan = Plan{}}),
              ElementsAre("overlap", "state", "state_period", "noise_correction", "sync_warmup_iterations"));
}

TEST(SyncOptionsTest, TextsBecomeValuesAndBack) {
  SyncOptions options;
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{{"disagreement_limit", "0.25"},
                                                                                   {"group_limit", "4"},
                                                                                   {"exact_inside", "rack"},
                                                                                   {"adapt", "on"},
                                                                                   {"codec", "int4"},
                                                                                   {"codec_rate", "500MB"},
                                                                                   {"overlap", "layered"},
                                                                                   {"state", "averaged"},
                                                                                   {"state_period", "6"},
                                                                                   {"staleness", "0"},
                                                                                   {"bucket_bytes", "2MB"}}) {
    set_option(options, name, text);
  }
  EXPECT_EQ(options.disagreement, 0.25);
  EXPECT_EQ(options.group_limit, 4);
  EXPECT_EQ(options.exact_inside, exact_inside_from_name("rack"));
  EXPECT_TRUE(options.adapt);
  EXPECT_EQ(options.codec_choice(), (CodecChoice{Codec::kInt4, 5e8}));
  EXPECT_EQ(options.state, StateTreatment::kAveraged);
  EXPECT_EQ(options.state_period, 6);
  EXPECT_EQ(options.staleness, 0);
  EXPECT_EQ(options.bucket_bytes, 2'000'000);
  std::vector<std::string> texts;
  for (const auto& [name, value] : values_of(options)) texts.push_back(text_of(value));
  EXPECT_THAT(texts, ElementsAre("0.25", "4", "off", "rack", "on", "off", "int4", "500000000", "layered", "averaged",
                                 "6", "on", "0"));
}

TEST(SyncOptionsTest, ALimitMayBeTheMostThatSteeringAllows) {
  SyncOptions options;
  set_option(options, "disagreement_limit", "auto:0.3");
  EXPECT_TRUE(options.steer);
  EXPECT_EQ(options.disagreement, 0.3);
}

TEST(SyncOptionsTest, BadTextsAreNamed) {
  EXPECT_EQ(problem_of("disagreement_limit", "-1"),
            "disagreement_limit: expected a number of at least 0, such as 0.5, but found '-1'");
  EXPECT_EQ(problem_of("group_limit", "1"), "group_limit: expected a whole number of at least 2, but found '1'");
  EXPECT_EQ(problem_of("exact_inside", "shelf"),
            "exact_inside: expected none, host, rack, site, the number of a level, or auto, but found 'shelf'");
  EXPECT_EQ(problem_of("state", "x"),
            "state: expected one of auto, inferred, local, averaged, rotating, but found 'x'");
  EXPECT_EQ(problem_of("overlap", "yes"), "overlap: expected one of auto, layered, combine, none, but found 'yes'");
  EXPECT_EQ(problem_of("codec", "int2"),
            "codec: expected one of auto, float32, bfloat16, int8, int4, but found 'int2'");
  EXPECT_EQ(problem_of("speed", "1"), "there is no option 'speed'");
}

TEST(SyncOptionsTest, GradientsStayExactWhereNobodyAsksForACodec) {
  EXPECT_EQ(SyncOptions{.method = Method::kBspRing}.codec_choice(), CodecChoice{Codec::kFloat32});
  const CodecChoice any{std::nullopt};
  EXPECT_EQ((SyncOptions{.method = Method::kPs, .codec = any}.codec_choice()), CodecChoice{Codec::kFloat32});
  EXPECT_TRUE((SyncOptions{.codec = any}.codec_choice().is_auto()));
  EXPECT_EQ((SyncOptions{.method = Method::kBspHierarchical, .codec = CodecChoice{Codec::kInt8}}.codec_choice()),
            CodecChoice{Codec::kInt8});
}

TEST(SyncOptionsTest, NamesAndFlagsAreUnique) {
  std::set<std::string> names;
  for (const SyncOption& option : sync_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_FALSE(option.methods.empty()) << option.name;
    for (const SyncOption::Flag* flag : {&option.flag, &option.opposite}) {
      EXPECT_TRUE(flag->name.empty() || names.insert(flag->name).second) << flag->name;
    }
  }
}

TEST(SyncOptionsTest, OptionsThatDoNotGoTogetherAreRefused) {
  const auto message = [](const SyncOptions& options) -> std::string {
    try {
      check(options);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({}), "");
  EXPECT_THAT(message({.method = Method::kBspRing, .adapt = true}), HasSubstr("only plans that ds-sync makes itself"));
  EXPECT_THAT(message({.steer = true}), HasSubstr("expected adapt as well"));
  EXPECT_EQ(message({.method = Method::kAsp, .codec = CodecChoice{Codec::kInt4}}),
            "codec: asp sends changes of parameters as float32; expected float32, but found int4");
  EXPECT_EQ(message({.method = Method::kSsp, .codec = CodecChoice{Codec::kFloat32}}), "");
  EXPECT_THAT(message({.method = Method::kLocalSgd, .period = 0}), HasSubstr("period: expected at least 1"));
}

TEST(MethodTest, NamesLeadBack) {
  for (const Method method : all_methods()) EXPECT_EQ(method_from_name(name_of(method)), method);
  EXPECT_THROW(method_from_name("ring"), InputError);
}

}  // namespace
}  // namespace dssync
