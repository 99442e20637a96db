// What the program `dssync` does with its command line.
#pragma once

namespace dssync::cli {

// Picks the verb, runs it, and turns its outcome into an exit status (tool.h). Call it once, from main().
int run_verb(int argc, char** argv);

}  // namespace dssync::cli
