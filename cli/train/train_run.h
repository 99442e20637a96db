// Carries out `train`: as one worker, where the environment says which, or as the launcher of all.
#pragma once

#include "train/train.h"

namespace dssync::cli {

// The exit status. Errors of workers are told by them; whatever is wrong before any worker starts is thrown.
int run_train(const TrainCommand& command);

}  // namespace dssync::cli
