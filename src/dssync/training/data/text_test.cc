// Windows worked out by hand, and the standard library of this machine's Python.
#include "dssync/training/data/text.h"

#include <set>
#include <string>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/base/temporary_folder.h"
#include "dssync/comm/testing.h"
#include "dssync/training/data/load_data.h"

namespace dssync {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::write_file;

namespace fs = std::filesystem;

std::string text_in(const at::Tensor& symbols) {
  std::string text;
  for (std::int64_t at = 0; at < symbols.numel(); ++at)
    text.push_back(static_cast<char>(symbols[at].item<std::int64_t>()));
  return text;
}

TEST(TextSetTest, WindowsFollowEachOther) {
  const TextSet set("abcdefghijklm", 3, "test");
  ASSERT_EQ(set.size(), 3);  // one is left out, so that they can be shifted
  const Batch batch = set.range(0, 3);
  EXPECT_EQ(batch.inputs.sizes(), at::IntArrayRef({3, 3}));
  EXPECT_EQ(text_in(batch.inputs[0]), "abc");
  EXPECT_EQ(text_in(batch.targets[0]), "bcd");
  EXPECT_EQ(text_in(batch.inputs[2]), "ghi");
  EXPECT_EQ(text_in(batch.targets[2]), "hij");
}

TEST(TextSetTest, EveryEpochCutsElsewhereAndLosesNothing) {
  const TextSet set("abcdefghijklmnopqrstuvwxyz", 6, "test");
  ASSERT_EQ(set.size(), 3);
  std::set<char> first;
  for (int epoch = 0; epoch < 50; ++epoch) {
    const Batch batch = set.batch(at::tensor({2, 0, 1}, at::kLong), epoch);
    const std::string start = text_in(batch.inputs[1]);
    EXPECT_EQ(text_in(batch.inputs[2]).front(), start.front() + 6);
    EXPECT_EQ(text_in(batch.inputs[0]).front(), start.front() + 12);
    first.insert(start.front());
  }
  EXPECT_EQ(std::string(first.begin(), first.end()), "abcdef");
}

TEST(TextSetTest, OneSymbolStandsForAllBytesThatAreNotAscii) {
  const TextSet set("a\x7f\x80\xff\n~xxxxxx", 6, "test");
  const Batch batch = set.range(0, 1);
  EXPECT_TRUE(at::equal(batch.inputs[0], at::tensor({97, 127, 127, 127, 10, 126}, at::kLong)));
}

TEST(TextSetTest, RefusesATextThatIsTooShort) {
  EXPECT_THAT(message_of<InputError>([] { TextSet("abcde", 3, "test"); }),
              HasSubstr("5 bytes of test text are not enough for windows of 3"));
}

class TextFolderTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) { write_file(folder_ / name, text); }

  TemporaryFolder folder_;
};

TEST_F(TextFolderTest, EachTwentiethFileIsForTesting) {
  for (int file = 0; file < 22; ++file) {
    const auto letter = static_cast<char>('a' + file);
    write(std::string(1, letter) + ".py", std::string(6, letter));
  }
  write("notes.txt", "not this");
  fs::create_symlink(folder_ / "notes.txt", folder_ / "link.py");
  const TextSets sets = load_text(folder_.path(), 6);
  ASSERT_EQ(sets.test.size(), 1);
  EXPECT_EQ(text_in(sets.test.range(0, 1).targets[0]), "aaaaau");
  ASSERT_EQ(sets.train.size(), 19);
  EXPECT_EQ(text_in(sets.train.range(18, 19).targets[0]), "tttttv");
}

TEST_F(TextFolderTest, SaysWhichPackageBringsTheFiles) {
  write("only.py", "x = 1\n");
  EXPECT_THAT(message_of<InputError>([&] { load_text(folder_.path(), 6); }),
              AllOf(StartsWith(folder_.path().string()), HasSubstr("has 1 *.py files, expected at least 2"),
                    HasSubstr("apt install libpython3-stdlib")));
  EXPECT_THAT(message_of<InputError>([&] { load_text(folder_ / "nowhere", 6); }), HasSubstr("has 0 *.py files"));
  EXPECT_THAT(message_of<InputError>([&] { standard_library_folder(folder_.path()); }),
              AllOf(HasSubstr("has no python3.* with *.py files"), HasSubstr("apt install libpython3-stdlib")));
}

TEST_F(TextFolderTest, FindsTheNewestPython) {
  for (const std::string name : {"python3", "python3.9", "python3.11", "python3.12", "python3.11-old", "python2.7"}) {
    fs::create_directory(folder_ / name);
    if (name != "python3.12") write(name + "/a.py", "x = 1\n");
  }
  EXPECT_EQ(standard_library_folder(folder_.path()), folder_ / "python3.11");
}

TEST(StandardLibraryTest, IsThereAndLargeEnough) {
  const Datasets sets = load_data({.name = "text"});
  EXPECT_GT(sets.train->size(), 3'000'000 / 64);
  EXPECT_GT(sets.test->size(), 100'000 / 64);
  const Datasets some = load_data({.name = "text", .train_examples = 100, .test_examples = 10, .context = 32});
  EXPECT_EQ(some.train->size(), 100);
  EXPECT_EQ(some.test->size(), 10);
  EXPECT_EQ(some.train->range(0, 10).inputs.sizes(), at::IntArrayRef({10, 32}));
  EXPECT_THAT(message_of<InputError>([] { load_data({.name = "text", .train_examples = 100'000'000}); }),
              HasSubstr("100000000 training examples of text were asked for"));
}

}  // namespace
}  // namespace dssync
