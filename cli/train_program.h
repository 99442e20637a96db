// The verb `train` of the program `dssync`: hands over to the program `dssync-train`. Loading PyTorch takes half a
// second, which no other verb should pay for.
#pragma once

namespace CLI {
class App;
}

namespace dssync::cli {

// For the list of verbs in the help.
void add_train(CLI::App& app);

// Whether the command line asks for it.
bool is_train(int argc, char** argv);

// Becomes dssync-train, which stands beside this program or on PATH. Returns only by throwing Error.
[[noreturn]] void become_train(int argc, char** argv);

}  // namespace dssync::cli
