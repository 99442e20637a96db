// The program dssync-torch, which `dssync` hands over to for the verbs that need PyTorch.
#include "torch_verbs.h"

int main(int argc, char** argv) { return dssync::cli::run_torch_verb(argc, argv); }
