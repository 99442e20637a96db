// What the program `dssync-torch` does with its command line.
#pragma once

namespace dssync::cli {

// Runs the verb `train` or `bench`, and turns its outcome into an exit status (tool.h). Call it once, from main().
int run_torch_verb(int argc, char** argv);

}  // namespace dssync::cli
