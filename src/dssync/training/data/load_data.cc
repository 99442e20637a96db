#include "dssync/training/data/load_data.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/training/data/clicks.h"
#include "dssync/training/data/images.h"
#include "dssync/training/data/text.h"

namespace dssync {
namespace {

template <typename Sets>
Datasets shared(Sets sets) {
  using Set = decltype(sets.train);
  return {std::make_shared<Set>(std::move(sets.train)), std::make_shared<Set>(std::move(sets.test))};
}

template <typename Sets>
Datasets first_examples(Sets sets, const DataOptions& options) {
  sets.train.cut(options.train_examples, "training");
  sets.test.cut(options.test_examples, "test");
  return shared(std::move(sets));
}

Datasets load_images(const DataOptions& options) {
  return first_examples(load_fashion_mnist(options.folder.empty() ? kFashionMnistFolder : options.folder), options);
}

Datasets make_images(const DataOptions& options) {
  SyntheticOptions synthetic;
  if (options.train_examples != 0) synthetic.train_examples = options.train_examples;
  if (options.test_examples != 0) synthetic.test_examples = options.test_examples;
  return shared(make_synthetic(synthetic));
}

Datasets load_windows(const DataOptions& options) {
  const auto folder = options.folder.empty() ? standard_library_folder() : options.folder;
  return first_examples(load_text(folder, options.context), options);
}

Datasets make_impressions(const DataOptions& options) {
  ClickOptions clicks{.rows = options.rows};
  if (options.train_examples != 0) clicks.train_examples = options.train_examples;
  if (options.test_examples != 0) clicks.test_examples = options.test_examples;
  return shared(make_clicks(clicks));
}

ExampleShape image_shape(const DataOptions&) { return ImageShape{1, kImageSide, kImageSide, 10}; }

ExampleShape text_shape(const DataOptions& options) { return TextShape{kTextSymbols, options.context}; }

ExampleShape click_shape(const DataOptions& options) { return ClickShape{kClickFields, options.rows}; }

struct Source {
  const char* name;
  bool has_files;
  ExampleShape (*shape)(const DataOptions&);
  Datasets (*load)(const DataOptions&);
};

constexpr Source kSources[] = {
    {"fashion-mnist", true, image_shape, load_images},
    {"synthetic", false, image_shape, make_images},
    {"text", true, text_shape, load_windows},
    {"clicks", false, click_shape, make_impressions},
};

const Source& source_named(const std::string& name) {
  for (const Source& source : kSources) {
    if (source.name == name) return source;
  }
  throw InputError(fmt::format("data {}: expected one of {}", quote(name), fmt::join(data_names(), ", ")));
}

}  // namespace

const std::vector<std::string>& data_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Source& source : kSources) all.emplace_back(source.name);
    return all;
  }();
  return names;
}

bool is_read_from_files(const std::string& name) { return source_named(name).has_files; }

ExampleShape shape_of(const DataOptions& options) { return source_named(options.name).shape(options); }

const char* examples_word(const ExampleShape& shape) {
  constexpr const char* kWords[] = {"images", "windows", "impressions"};
  static_assert(std::size(kWords) == std::variant_size_v<ExampleShape>);
  return kWords[shape.index()];
}

Datasets load_data(const DataOptions& options) { return source_named(options.name).load(options); }

}  // namespace dssync
