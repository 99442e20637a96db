#include "torch_program.h"

#include <algorithm>
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
#include "dssync/testbed/testbed.h"

namespace dssync::cli {
namespace {

constexpr const char* kProgram = "dssync-torch";

// PyTorch's libraries start threads as they are loaded, and a process with threads cannot enter a user namespace.
void prepare_emulation(int argc, char** argv) {
  const bool is_asked_for = std::any_of(argv + 2, argv + argc, [](std::string_view argument) {
    return argument == "--emulate" || argument.starts_with("--emulate=");
  });
  const bool is_only_help = std::any_of(argv + 2, argv + argc, [](const char* argument) {
    return std::string_view(argument) == "--help" || std::string_view(argument) == "-h";
  });
  if (is_asked_for && !is_only_help) ensure_network_privileges();
}

}  // namespace

void add_torch_verbs(CLI::App& app) {
  app.add_subcommand("train", kTrainHelp)->group("Verbs");
  app.add_subcommand("bench", kBenchHelp)->group("Verbs");
}

bool is_torch_verb(int argc, char** argv) {
  return argc > 1 && (std::string_view(argv[1]) == "train" || std::string_view(argv[1]) == "bench");
}

void become_torch_program(int argc, char** argv) {
  prepare_emulation(argc, argv);
  std::string name = kProgram;
  std::vector<char*> arguments{name.data()};
  for (int i = 1; i < argc; ++i) arguments.push_back(argv[i]);
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
      fmt::format("{} needs the program {}, which is neither in {} nor on PATH: 'make build' builds it, with Debian's "
                  "PyTorch (PyTorch 2 from PyPI has no Gloo for C++)",
                  argv[1], kProgram, self.parent_path().string()));
}

}  // namespace dssync::cli
