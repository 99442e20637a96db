#include "quiet_torch.h"

#include <cstdlib>

#include <c10/util/Logging.h>

namespace dssync::cli {

void silence_torch() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") != nullptr || std::getenv("GLOG_minloglevel") != nullptr) return;
#ifdef C10_USE_GLOG
  FLAGS_minloglevel = google::GLOG_FATAL;
#else
  FLAGS_caffe2_log_level = c10::GLOG_FATAL;
#endif
}

}  // namespace dssync::cli
