// The parts of the extension module `_dssync`. Bindings convert and release the GIL, nothing else; what users see is in
// python/dssync.
#pragma once

#include <pybind11/pybind11.h>

#include "dssync/planner/planner.h"
#include "dssync/topology/topology.h"

namespace dssync::python {

// A plan with the network that it was made for, which names its links.
struct PlanOnNetwork {
  Plan plan;
  Topology topology;
};

void bind_errors(pybind11::module_& module);
void bind_planning(pybind11::module_& module);
void bind_training(pybind11::module_& module);

}  // namespace dssync::python
