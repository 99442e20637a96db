// What is written is what is read, to the bit; and what is damaged, missing or of another run is refused by name.
#include "dssync/training/checkpoints/checkpoint.h"

#include <limits>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/base/temporary_folder.h"
#include "dssync/comm/testing.h"
#include "dssync/training/checkpoints/checkpoint_folder.h"

namespace dssync {
namespace {

using ::testing::AllOf;
using testing::content_of;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using ::testing::UnorderedElementsAre;
using testing::write_file;

namespace fs = std::filesystem;

const std::string kName = "iteration-00000042-0000beef";

Checkpoint sample(int rank = 3) {
  Checkpoint checkpoint;
  checkpoint.name = kName;
  checkpoint.rank = rank;
  checkpoint.identity = {{"workers", "8"}, {"method", "ds-sync"}, {"model", "cnn"}};
  checkpoint.iteration = 42;
  checkpoint.epoch = 2;
  checkpoint.seconds = 0.1 + 0.2;
  checkpoint.training_seconds = 1.0 / 3;
  const at::Tensor flat = at::randn({1'000});
  checkpoint.parameters = {{"layer.weight", flat.slice(0, 10, 22).view({3, 4})}, {"layer.bias", flat.slice(0, 0, 3)}};
  checkpoint.buffers = {{"norm.mean", at::tensor({std::numeric_limits<float>::denorm_min(), -0.0F})},
                        {"norm.count", at::scalar_tensor(std::int64_t{1} << 60, at::kLong)}};
  checkpoint.optimizer = {{"momentum_buffer", {{"layer.weight", at::randn({3, 4})}}},
                          {"step", {{"layer.bias", at::scalar_tensor(7, at::kLong)}}}};
  return checkpoint;
}

void expect_same_bits(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t index = 0; index < a.size(); ++index) {
    EXPECT_EQ(a[index].name, b[index].name);
    EXPECT_EQ(a[index].tensor.scalar_type(), b[index].tensor.scalar_type());
    EXPECT_EQ(a[index].tensor.sizes(), b[index].tensor.sizes());
    const at::Tensor first = a[index].tensor.contiguous();
    const at::Tensor second = b[index].tensor.contiguous();
    EXPECT_EQ(std::memcmp(first.data_ptr(), second.data_ptr(), first.nbytes()), 0) << a[index].name;
  }
}

class CheckpointTest : public ::testing::Test {
 protected:
  std::string refused(const std::string& content) {
    write_file(file_, content);
    return message_of<Error>([&] { read_checkpoint(file_, kName, 3); });
  }

  TemporaryFolder folder_;
  fs::path file_ = folder_ / "rank-3.ckpt";
};

TEST_F(CheckpointTest, ComesBackToTheBit) {
  const Checkpoint written = sample();
  const std::int64_t size = write_checkpoint(file_, written);
  EXPECT_EQ(size, static_cast<std::int64_t>(fs::file_size(file_)));
  const Checkpoint read = read_checkpoint(file_, kName, 3);
  EXPECT_EQ(read.identity, written.identity);
  EXPECT_EQ(read.iteration, 42);
  EXPECT_EQ(read.epoch, 2);
  EXPECT_EQ(read.seconds, written.seconds);
  EXPECT_EQ(read.training_seconds, written.training_seconds);
  expect_same_bits(read.parameters, written.parameters);
  expect_same_bits(read.buffers, written.buffers);
  ASSERT_EQ(read.optimizer.size(), 2u);
  EXPECT_EQ(read.optimizer[1].name, "step");
  expect_same_bits(read.optimizer[0].tensors, written.optimizer[0].tensors);
  expect_same_bits(read.optimizer[1].tensors, written.optimizer[1].tensors);
}

TEST_F(CheckpointTest, AViewDoesNotBringItsWholeTensor) {
  Checkpoint checkpoint = sample();
  checkpoint.parameters = {{"part", at::zeros({10'000'000}).slice(0, 0, 10)}};
  EXPECT_LT(write_checkpoint(file_, checkpoint), 100'000);
}

TEST_F(CheckpointTest, EveryDamagedByteIsNoticed) {
  write_checkpoint(file_, sample());
  const std::string whole = content_of(file_);
  for (std::size_t at = 0; at < whole.size(); at += 1 + at / 40) {
    if (at >= 28 && at < 32) continue;  // of the header, the bytes that mean nothing
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_THAT(refused(damaged), StartsWith(file_.string() + ": the checkpoint of rank 3 ")) << at;
  }
}

TEST_F(CheckpointTest, DamageIsCalledByItsName) {
  write_checkpoint(file_, sample());
  const std::string whole = content_of(file_);
  std::string flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 1);
  EXPECT_THAT(refused(flipped), HasSubstr("rank 3 is damaged: its checksum is wrong"));
  EXPECT_THAT(refused(whole.substr(0, whole.size() - 1)), HasSubstr("rank 3 is truncated: "));
  EXPECT_THAT(refused(whole.substr(0, 20)), HasSubstr("is truncated: 20 bytes"));
  EXPECT_THAT(refused(""), HasSubstr("is truncated: 0 bytes"));
  EXPECT_THAT(refused(whole + "x"), HasSubstr("goes on after its end"));
  EXPECT_THAT(refused(std::string(100, 'x')), HasSubstr("is no checkpoint of this version"));
  fs::remove(file_);
  EXPECT_THAT(message_of<Error>([&] { read_checkpoint(file_, kName, 3); }), HasSubstr("No such file or directory"));
}

TEST_F(CheckpointTest, TheFileOfAnotherWorkerOrCheckpointIsRefused) {
  write_checkpoint(file_, sample(5));
  EXPECT_THAT(message_of<Error>([&] { read_checkpoint(file_, kName, 3); }),
              HasSubstr("is the file of rank 5 of checkpoint " + kName));
  write_checkpoint(file_, sample());
  EXPECT_THAT(message_of<Error>([&] { read_checkpoint(file_, "iteration-00000043-0000beef", 3); }),
              HasSubstr("is the file of rank 3 of checkpoint " + kName));
}

TEST_F(CheckpointTest, AFullDiskLeavesTheOldFile) {
  write_checkpoint(file_, sample());
  const std::string before = content_of(file_);
  // What goes to the temporary name ends up in a device without space.
  const fs::path temporary = file_.string() + ".tmp";
  fs::create_symlink("/dev/full", temporary);
  EXPECT_THAT(message_of<Error>([&] { write_checkpoint(file_, sample()); }),
              AllOf(StartsWith(file_.string()), HasSubstr("rank 3 cannot be written (No space left on device)")));
  EXPECT_EQ(content_of(file_), before);
  EXPECT_FALSE(fs::exists(fs::symlink_status(temporary)));
}

TEST(IdentityTest, SaysWhatDiffers) {
  const RunIdentity saved{{"workers", "8"}, {"model", "cnn"}, {"overlap", "on"}};
  EXPECT_NO_THROW(check_identity("file", saved, saved));
  const auto refused = [&saved](const RunIdentity& own) {
    return message_of<InputError>([&] { check_identity("file", saved, own); });
  };
  EXPECT_THAT(refused({{"workers", "4"}, {"model", "cnn"}, {"overlap", "on"}}),
              StartsWith("file: workers was 8 when this checkpoint was written, and is 4 now"));
  EXPECT_THAT(refused({{"workers", "8"}, {"model", "mlp"}, {"overlap", "on"}}), HasSubstr("model was cnn"));
  EXPECT_THAT(refused({{"workers", "8"}, {"model", "cnn"}}), HasSubstr("overlap was on"));
  EXPECT_THAT(refused({{"workers", "8"}, {"model", "cnn"}, {"overlap", "on"}, {"period", "4"}}),
              HasSubstr("period was not set when this checkpoint was written, and is 4 now"));
}

// Saves as two workers would; the part of rank 0 comes last.
class CheckpointFolderTest : public ::testing::Test {
 protected:
  std::string save_both(std::int64_t iteration) {
    Checkpoint checkpoint = sample(1);
    checkpoint.name = CheckpointFolder::name_for(iteration, 0xbeef);
    second_.save(checkpoint);
    checkpoint.rank = 0;
    first_.save(checkpoint);
    return checkpoint.name;
  }

  std::string checkpoint(std::int64_t iteration) {
    const std::string previous = first_.latest();
    const std::string name = save_both(iteration);
    second_.keep_only(name, previous);
    first_.publish(name);
    first_.keep_only(name, previous);
    return name;
  }

  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(place_)) names.push_back(entry.path().filename());
    return names;
  }

  TemporaryFolder folder_;
  fs::path place_ = folder_ / "deep/below";
  CheckpointFolder first_{place_, 0};
  CheckpointFolder second_{place_, 1};
};

TEST_F(CheckpointFolderTest, CountsWhenItIsPublished) {
  EXPECT_EQ(first_.latest(), "");
  const std::string name = save_both(10);
  EXPECT_EQ(name, "iteration-00000010-0000beef");
  EXPECT_EQ(first_.latest(), "");
  first_.publish(name);
  EXPECT_EQ(first_.latest(), name);
  EXPECT_EQ(read_checkpoint(second_.file_of(name), name, 1).rank, 1);
}

TEST_F(CheckpointFolderTest, KeepsTheLastTwo) {
  checkpoint(10);
  const std::string second = checkpoint(20);
  const std::string third = checkpoint(30);
  EXPECT_THAT(entries(), UnorderedElementsAre("latest", second, third));
}

TEST_F(CheckpointFolderTest, RemovesNothingThatItDidNotMake) {
  fs::create_directories(place_ / "iteration-of-mine");
  write_file(place_ / "notes.txt", "keep");
  const std::string name = checkpoint(10);
  EXPECT_THAT(entries(), UnorderedElementsAre("latest", name, "iteration-of-mine", "notes.txt"));
}

TEST_F(CheckpointFolderTest, AWorkerThatIsAheadRemovesNothingThatStillCounts) {
  checkpoint(10);
  const std::string second = checkpoint(20);
  const std::string unpublished = save_both(30);
  second_.keep_only(unpublished, second);  // and now rank 0 crashes
  EXPECT_EQ(first_.latest(), second);
  EXPECT_EQ(read_checkpoint(first_.file_of(second), second, 0).rank, 0);
  EXPECT_EQ(read_checkpoint(second_.file_of(second), second, 1).rank, 1);
}

TEST_F(CheckpointFolderTest, AFullDiskLeavesTheLastOneInPlace) {
  const std::string name = checkpoint(10);
  Checkpoint next = sample(0);
  next.name = CheckpointFolder::name_for(20, 0xbeef);
  fs::create_directories(first_.path_of(next.name));
  fs::create_symlink("/dev/full", first_.file_of(next.name).string() + ".tmp");
  EXPECT_THAT(message_of<Error>([&] { first_.save(next); }), HasSubstr("No space left on device"));
  EXPECT_EQ(first_.latest(), name);
  EXPECT_NO_THROW(read_checkpoint(first_.file_of(name), name, 0));
  EXPECT_FALSE(fs::exists(first_.path_of(next.name)));

  save_both(30);
  fs::create_symlink("/dev/full", place_ / "latest.tmp");
  EXPECT_THAT(message_of<Error>([&] { first_.publish(CheckpointFolder::name_for(30, 0xbeef)); }),
              AllOf(StartsWith((place_ / "latest").string()), HasSubstr("No space left on device")));
  EXPECT_EQ(first_.latest(), name);
}

TEST_F(CheckpointFolderTest, ADamagedNameIsAnError) {
  checkpoint(10);
  write_file(place_ / "latest", "");
  EXPECT_THAT(message_of<Error>([&] { first_.latest(); }), HasSubstr("cannot be read or is empty"));
  write_file(place_ / "latest", "../../elsewhere\n");
  EXPECT_THAT(message_of<Error>([&] { first_.latest(); }), HasSubstr("names no checkpoint: \"../../elsewhere\""));
}

TEST_F(CheckpointFolderTest, AFolderThatCannotBeMadeIsNamed) {
  write_file(folder_ / "file", "");
  const CheckpointFolder impossible(folder_ / "file", 0);
  EXPECT_THAT(message_of<Error>([&] { impossible.save(sample(0)); }),
              AllOf(StartsWith((folder_ / "file").string()), HasSubstr("rank 0 cannot be written (Not a directory)")));
}

}  // namespace
}  // namespace dssync
