// The verbs of the program `dssync` that need PyTorch: it hands over to the program `dssync-torch`. Loading PyTorch
// takes half a second, which no other verb should pay for.
#pragma once

namespace CLI {
class App;
}

namespace dssync::cli {

inline constexpr const char* kTrainHelp = "Train a model with workers on this machine, or as one worker of many";
inline constexpr const char* kBenchHelp =
    "Measure how long methods take to synchronize, and compare with the prediction";

// For the list of verbs in the help.
void add_torch_verbs(CLI::App& app);

// Whether the command line asks for one of them.
bool is_torch_verb(int argc, char** argv);

// Becomes dssync-torch, which stands beside this program or on PATH. Returns only by throwing Error.
[[noreturn]] void become_torch_program(int argc, char** argv);

}  // namespace dssync::cli
