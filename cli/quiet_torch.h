// What libtorch logs on standard error by itself.
#pragma once

namespace dssync::cli {

// c10d logs failures that it also throws, and others that it recovers from. Every failure is told once, by this
// program; so the log is off, unless TORCH_CPP_LOG_LEVEL or GLOG_minloglevel is set in the environment. Call it at the
// start.
void silence_torch();

}  // namespace dssync::cli
