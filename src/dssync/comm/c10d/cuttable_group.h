// A process group whose every wait ends when it is cut, whatever the group below it does. (Gloo never fails a send to a
// connection that its other end has closed, and a wait for anyone's message hears of nothing.)
#pragma once

#include "dssync/comm/c10d/c10d.h"

namespace dssync {

// Offers the operations that dssync uses: alltoall_base, allgather, allreduce, broadcast, gather, send, recv,
// recvAnysource. cut() ends all that is under way with an error, at once, and later operations throw. What the group
// below still holds on to then, its memory and its threads, lives until it lets go; nobody waits for that.
// As thread-safe as `group`; cut() may be called at any time.
Channel make_cuttable(Channel group);

}  // namespace dssync
