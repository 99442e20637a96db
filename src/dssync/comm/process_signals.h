// What a process that talks to others must do about signals.
#pragma once

namespace dssync {

// From now on a peer that goes away (SIGPIPE) is an error of the call, not the end of the process. Whoever handles the
// signal keeps doing so. Thread-safe.
void ignore_broken_pipes();

}  // namespace dssync
