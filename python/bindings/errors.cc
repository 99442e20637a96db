// dssync's exceptions, one to one.
#include "bindings.h"
#include "dssync/base/error.h"
#include "dssync/comm/world.h"

namespace dssync::python {

void bind_errors(pybind11::module_& module) {
  // The last one that fits is taken, so those above come first.
  auto error = pybind11::register_exception<Error>(module, "Error", PyExc_RuntimeError);
  pybind11::register_exception<InputError>(module, "InputError", error);
  pybind11::register_exception<AgreementError>(module, "AgreementError", error);
  pybind11::register_exception<PeerError>(module, "PeerError", error);
}

}  // namespace dssync::python
