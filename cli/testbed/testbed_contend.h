// `dssync testbed contend`: a link of a running testbed loses a part of its capacity, for a while or for good.
#pragma once

#include "testbed/testbed.h"

namespace dssync::cli {

// Returns the exit status. Throws InputError for an unknown link or a rate above its capacity.
int contend(const TestbedOptions& options);

}  // namespace dssync::cli
