// The IDX reader with good and bad files, Fashion-MNIST itself, and whether the synthetic set can be learned.
#include "dssync/training/data/images.h"

#include <initializer_list>
#include <string>
#include <vector>
#include <zlib.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "dssync/base/error.h"
#include "dssync/base/temporary_folder.h"
#include "dssync/comm/testing.h"
#include "dssync/training/data/idx_file.h"
#include "dssync/training/data/load_data.h"
#include "dssync/training/data/sharded_batches.h"
#include "dssync/training/models/models.h"
#include "dssync/training/optimizers.h"
#include "dssync/training/threads.h"

namespace dssync {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::write_file;

namespace fs = std::filesystem;

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text.push_back(static_cast<char>(value));
  return text;
}

std::string gzipped(const std::string& plain) {
  z_stream zlib{};
  deflateInit2(&zlib, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&zlib, plain.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  zlib.avail_in = static_cast<uInt>(plain.size());
  zlib.next_out = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  deflate(&zlib, Z_FINISH);
  packed.resize(zlib.total_out);
  deflateEnd(&zlib);
  return packed;
}

// Two images of 2 x 3 with the pixels 1 to 12.
const std::string kHeader = bytes({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3});
const std::string kPixels = bytes({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});

class IdxFileTest : public ::testing::Test {
 protected:
  at::Tensor read(const std::string& content) {
    write_file(file_, content);
    return read_idx(file_, {-1, 2, 3});
  }

  std::string refused(const std::string& content) {
    return message_of<InputError>([&] { read(content); });
  }

  TemporaryFolder folder_;
  fs::path file_ = folder_ / "images.gz";
};

TEST_F(IdxFileTest, ReadsDimensionsAndBytes) {
  const at::Tensor images = read(gzipped(kHeader + kPixels));
  EXPECT_EQ(images.sizes(), at::IntArrayRef({2, 2, 3}));
  EXPECT_TRUE(at::equal(images.flatten(), at::arange(1, 13, at::kByte)));
}

TEST_F(IdxFileTest, NamesTheFile) { EXPECT_THAT(refused("x"), StartsWith(file_.string() + ": ")); }

TEST_F(IdxFileTest, RefusesOtherKindsOfFiles) {
  EXPECT_THAT(refused(kHeader + kPixels), HasSubstr("is no gzip file or damaged"));
  EXPECT_THAT(refused(""), HasSubstr("is empty or no file"));
  EXPECT_THAT(refused(gzipped("")), HasSubstr("ends within its header"));
  EXPECT_THAT(refused(gzipped(bytes({0, 0, 8, 1, 0, 0, 0, 12}) + kPixels)),
              HasSubstr("begins with 0x00000801, expected 0x00000803: unsigned bytes in 3 dimension(s)"));
  EXPECT_THAT(refused(gzipped(bytes({0, 0, 13, 3}) + kPixels)), HasSubstr("begins with 0x00000d03"));
}

TEST_F(IdxFileTest, RefusesOtherDimensions) {
  const std::string header = bytes({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2});
  EXPECT_THAT(refused(gzipped(header + kPixels)), HasSubstr("dimension 2 is 3, expected 2"));
  const std::string none = bytes({0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3});
  EXPECT_THAT(refused(gzipped(none)), HasSubstr("dimension 1 is 0, expected at least 1"));
  const std::string huge = bytes({0, 0, 8, 3, 255, 255, 255, 255, 0, 0, 0, 2, 0, 0, 0, 3});
  EXPECT_THAT(refused(gzipped(huge)), HasSubstr("more than 4 GiB"));
}

TEST_F(IdxFileTest, RefusesTooFewBytes) {
  const std::string packed = gzipped(kHeader + kPixels);
  EXPECT_THAT(refused(gzipped(kHeader.substr(0, 10))), HasSubstr("ends within its header"));
  EXPECT_THAT(refused(gzipped(kHeader + kPixels.substr(1))),
              HasSubstr("is truncated: has 11 bytes of data, its dimensions (2 x 2 x 3) need 12"));
  for (const std::size_t size : {std::size_t{15}, packed.size() / 2, packed.size() - 9, packed.size() - 1}) {
    EXPECT_THAT(refused(packed.substr(0, size)), HasSubstr("is truncated")) << size << " of " << packed.size();
  }
}

TEST_F(IdxFileTest, RefusesTooManyBytes) {
  EXPECT_THAT(refused(gzipped(kHeader + kPixels + "x")), HasSubstr("goes on after the end of its data"));
  EXPECT_THAT(refused(gzipped(kHeader + kPixels) + "x"), HasSubstr("goes on after the end of the compressed data"));
  EXPECT_THAT(refused(gzipped(kHeader + kPixels) + gzipped("x")), HasSubstr("after the end of the compressed data"));
}

TEST_F(IdxFileTest, RefusesEveryFlippedByteOfTheChecksum) {
  const std::string packed = gzipped(kHeader + kPixels);
  for (std::size_t from_end = 1; from_end <= 8; ++from_end) {
    std::string damaged = packed;
    damaged[damaged.size() - from_end] ^= 1;
    EXPECT_THAT(refused(damaged), HasSubstr("damaged (incorrect")) << from_end;
  }
}

TEST_F(IdxFileTest, RefusesAFolder) {
  fs::create_directory(file_);
  EXPECT_THAT(message_of<InputError>([&] { read_idx(file_, {-1}); }), HasSubstr("is empty or no file"));
}

TEST(FashionMnistTest, IsWhatDebianShips) {
  const ImageSets sets = load_fashion_mnist();
  EXPECT_EQ(sets.train.images.sizes(), at::IntArrayRef({60'000, 1, 28, 28}));
  EXPECT_EQ(sets.test.images.sizes(), at::IntArrayRef({10'000, 1, 28, 28}));
  EXPECT_EQ(sets.train.images.scalar_type(), at::kByte);
  EXPECT_TRUE(at::equal(sets.train.labels.slice(0, 0, 5), at::tensor({9, 0, 0, 3, 0}, at::kLong)));
  EXPECT_TRUE(at::equal(sets.test.labels.slice(0, 0, 5), at::tensor({9, 2, 1, 1, 6}, at::kLong)));
  EXPECT_TRUE(at::equal(sets.train.labels.bincount(), at::full({10}, 6'000, at::kLong)));
  EXPECT_NEAR(sets.train.mean, 72.94035, 1e-4);  // published as 0.2860 and 0.3530 of 255
  EXPECT_NEAR(sets.test.deviation, 90.02118, 1e-4);
}

TEST(FashionMnistTest, BatchesAreNormalized) {
  const ImageSets sets = load_fashion_mnist();
  const Batch batch = sets.train.range(0, 2'000);
  EXPECT_NEAR(batch.inputs.mean().item<double>(), 0, 0.05);
  EXPECT_NEAR(batch.inputs.std().item<double>(), 1, 0.05);
  const Batch picked = sets.train.batch(at::tensor({3, 0}, at::kLong), 0);
  EXPECT_TRUE(at::equal(picked.inputs[0], batch.inputs[3]));
  EXPECT_TRUE(at::equal(picked.targets, at::tensor({3, 9}, at::kLong)));
}

TEST(FashionMnistTest, SaysHowToGetIt) {
  const TemporaryFolder empty;
  EXPECT_THAT(message_of<InputError>([&] { load_fashion_mnist(empty.path()); }),
              AllOf(StartsWith((empty / "train-images-idx3-ubyte.gz").string()),
                    HasSubstr("apt install dataset-fashion-mnist"), HasSubstr("--data synthetic")));
}

// A folder with two images, and labels as given.
class SmallSetTest : public ::testing::Test {
 protected:
  std::string refused(const std::string& labels) {
    const std::string image_header = bytes({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28});
    for (const std::string name : {"train", "t10k"}) {
      write_file(folder_ / (name + "-images-idx3-ubyte.gz"), gzipped(image_header + std::string(2 * 28 * 28, '\1')));
      write_file(folder_ / (name + "-labels-idx1-ubyte.gz"), gzipped(labels));
    }
    return message_of<InputError>([&] { load_fashion_mnist(folder_.path()); });
  }

  TemporaryFolder folder_;
};

TEST_F(SmallSetTest, LabelsMustFitTheImages) {
  EXPECT_EQ(refused(bytes({0, 0, 8, 1, 0, 0, 0, 2, 9, 0})), "no exception");
  EXPECT_THAT(refused(bytes({0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3})), HasSubstr("has 3 labels for 2 images"));
  EXPECT_THAT(refused(bytes({0, 0, 8, 1, 0, 0, 0, 2, 10, 0})), HasSubstr("label 10, expected 0 to 9"));
}

TEST(LoadDataTest, TakesTheFirstExamples) {
  const ImageSets all = load_fashion_mnist();
  const Datasets some = load_data({.name = "fashion-mnist", .train_examples = 100, .test_examples = 50});
  EXPECT_EQ(some.train->size(), 100);
  EXPECT_EQ(some.test->size(), 50);
  EXPECT_TRUE(at::equal(some.train->range(0, 100).inputs, all.train.range(0, 100).inputs));
  EXPECT_EQ(load_data({.name = "synthetic", .train_examples = 30, .test_examples = 20}).train->size(), 30);
}

TEST(LoadDataTest, RefusesWhatIsNotThere) {
  EXPECT_THAT(message_of<InputError>([] { load_data({.name = "mnist"}); }),
              HasSubstr("data \"mnist\": expected one of fashion-mnist, synthetic, text, clicks"));
  EXPECT_THAT(message_of<InputError>([] { load_data({.name = "fashion-mnist", .train_examples = 60'001}); }),
              HasSubstr("60001 training examples of fashion-mnist were asked for; it has 60000"));
  EXPECT_THAT(message_of<InputError>([] { load_data({.name = "synthetic", .train_examples = -1}); }),
              HasSubstr("-1 training examples"));
}

TEST(SyntheticTest, DependsOnTheSeedAlone) {
  const SyntheticOptions options{.train_examples = 50, .test_examples = 20, .seed = 7};
  const ImageSets first = make_synthetic(options);
  const ImageSets again = make_synthetic(options);
  EXPECT_TRUE(at::equal(first.train.images, again.train.images));
  EXPECT_TRUE(at::equal(first.train.labels, again.train.labels));
  EXPECT_TRUE(at::equal(first.test.images, again.test.images));
  const ImageSets other = make_synthetic({.train_examples = 50, .test_examples = 20, .seed = 8});
  EXPECT_FALSE(at::equal(first.train.images, other.train.images));
}

TEST(SyntheticTest, FewerExamplesAreTheFirstOnes) {
  const ImageSets some = make_synthetic({.train_examples = 20, .test_examples = 5});
  const ImageSets more = make_synthetic({.train_examples = 40, .test_examples = 5});
  EXPECT_TRUE(at::equal(some.train.images, more.train.images.slice(0, 0, 20)));
}

TEST(SyntheticTest, HasTheShapeAndAllTheClasses) {
  const ImageSets sets = make_synthetic({.train_examples = 1'000, .test_examples = 100});
  EXPECT_EQ(sets.train.images.sizes(), at::IntArrayRef({1'000, 1, 28, 28}));
  const at::Tensor counts = sets.train.labels.bincount();
  EXPECT_EQ(counts.size(0), 10);
  EXPECT_GT(counts.min().item<std::int64_t>(), 60);
  EXPECT_NEAR(sets.train.range(0, 1'000).inputs.std().item<double>(), 1, 1e-3);
}

// Accuracy on the test set after a few epochs.
template <typename Network>
double learned(Network& network, const ImageSets& sets) {
  torch::optim::SGD optimizer(network.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  ShardedBatches batches(sets.train.size(), 64, 0, 1, 1);
  for (int epoch = 0; epoch < 6; ++epoch) {
    for (std::int64_t index = 0; index < batches.per_epoch(); ++index) {
      const Batch batch = sets.train.batch(batches.batch(epoch, index), epoch);
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(network.forward(batch.inputs), batch.targets).backward();
      optimizer.step();
    }
    set_learning_rate(optimizer, 0.05 / (epoch + 2));
  }
  const Batch test = sets.test.range(0, sets.test.size());
  return network.forward(test.inputs).argmax(1).eq(test.targets).to(at::kFloat).mean().template item<double>();
}

struct Linear : torch::nn::Module {
  Linear() : layer(register_module("layer", torch::nn::Linear(28 * 28, 10))) {}
  at::Tensor forward(const at::Tensor& images) { return layer(images.flatten(1)); }
  torch::nn::Linear layer;
};

TEST(SyntheticTest, ConvolutionsLearnWhatALinearModelCannot) {
  use_threads(1);
  const ImageSets sets = make_synthetic({.train_examples = 6'000, .test_examples = 1'000});
  Linear linear;
  const double linear_accuracy = learned(linear, sets);
  const double cnn_accuracy = learned(*make_model({.name = "cnn"}, 1, ImageShape()), sets);
  RecordProperty("linear", std::to_string(linear_accuracy));
  RecordProperty("cnn", std::to_string(cnn_accuracy));
  EXPECT_GT(linear_accuracy, 0.3);
  EXPECT_LT(linear_accuracy, 0.9);
  EXPECT_GT(cnn_accuracy, 0.85);
  EXPECT_GT(cnn_accuracy, linear_accuracy + 0.1);
}

TEST(SyntheticTest, RefusesNumbersThatMakeNoSense) {
  EXPECT_THROW(make_synthetic({.train_examples = 0}), InputError);
  EXPECT_THROW(make_synthetic({.classes = 1}), InputError);
}

}  // namespace
}  // namespace dssync
