// The extension module `_dssync`.
#include <string>

#include "bindings.h"
#include "dssync/base/version.h"

PYBIND11_MODULE(_dssync, module) {
  module.attr("version") = std::string(dssync::kVersion);
  dssync::python::bind_errors(module);
  dssync::python::bind_planning(module);
  dssync::python::bind_training(module);
}
