#include "dssync/training/threads.h"

#include <dlfcn.h>

#include <ATen/Parallel.h>

namespace dssync {

void use_threads(int count) {
  at::set_num_threads(count);
  // torch does not know that OpenBLAS has threads of its own, one for every core.
  if (void* found = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(found)(count);
  }
}

}  // namespace dssync
