// The extension module `_dssync`.
#include <string>

#include <torch/version.h>

#include "bindings.h"
#include "dssync/base/version.h"

PYBIND11_MODULE(_dssync, module) {
  module.attr("version") = std::string(dssync::kVersion);
  module.attr("torch_version") = TORCH_VERSION;  // that it was built for
  dssync::python::bind_errors(module);
  dssync::python::bind_planning(module);
  dssync::python::bind_training(module);
}
