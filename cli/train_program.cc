#include "train_program.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/error.h"

namespace dssync::cli {
namespace {

constexpr const char* kProgram = "dssync-train";

}  // namespace

void add_train(CLI::App& app) {
  app.add_subcommand("train", "Train a model on this machine's workers, or as one worker of many")->group("Verbs");
}

bool is_train(int argc, char** argv) { return argc > 1 && std::string_view(argv[1]) == "train"; }

void become_train(int argc, char** argv) {
  std::string name = kProgram;
  std::vector<char*> arguments{name.data()};
  for (int i = 2; i < argc; ++i) arguments.push_back(argv[i]);
  arguments.push_back(nullptr);

  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string beside = self.parent_path() / kProgram;
  if (!unknown) execv(beside.c_str(), arguments.data());
  const int cause = errno;
  if (!unknown && cause != ENOENT) throw Error(fmt::format("cannot start {}: {}", beside, std::strerror(cause)));
  execvp(kProgram, arguments.data());
  if (errno != ENOENT) throw Error(fmt::format("cannot start {}: {}", kProgram, std::strerror(errno)));
  throw Error(
      fmt::format("this dssync was built without PyTorch; training needs the program {}, which is neither in {} "
                  "nor on PATH",
                  kProgram, self.parent_path().string()));
}

}  // namespace dssync::cli
