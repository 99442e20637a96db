// The command line tool.
#include "verbs.h"

int main(int argc, char** argv) { return dssync::cli::run_verb(argc, argv); }
