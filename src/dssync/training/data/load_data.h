// The data sets by name. Start here to add one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "dssync/training/data/dataset.h"

namespace dssync {

struct DataOptions {
  std::string name = "fashion-mnist";  // one of data_names()
  std::filesystem::path folder{};      // empty: where Debian has it
  std::int64_t train_examples = 0;     // the first so many; 0: all, or as many as a made-up set has by default
  std::int64_t test_examples = 0;
  std::int64_t context = TextShape().context;  // of text
  std::int64_t rows = ClickShape().rows;       // of clicks
};

const std::vector<std::string>& data_names();

// Whether a data set is read from files.
bool is_read_from_files(const std::string& name);

// Without looking at any file. Throws InputError, with the known names, for another name.
ExampleShape shape_of(const DataOptions& options);

// What its examples are called: "images".
const char* examples_word(const ExampleShape& shape);

// Throws InputError for other names, for files that are missing or damaged, and where there are not so many examples.
Datasets load_data(const DataOptions& options);

}  // namespace dssync
