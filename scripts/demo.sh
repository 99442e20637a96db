#!/usr/bin/env bash
# Plans the shipped example network, explains the answer, and trains with it. `make demo` builds and then runs this.
set -euo pipefail
cd "$(dirname "$0")/.."

cat <<'TEXT'

Eight workers train one model together: four in rack A, four in rack B. A host's network card moves 200 Mbit/s, but all
traffic between the racks shares uplinks of 50 Mbit/s. Averaging everything among all workers after every iteration makes
everyone wait for those uplinks. So we ask: who should average with whom, and when, if the replicas may drift apart a little?

TEXT

command=(dssync plan --topology examples/topologies/two-racks.yaml)
printf '$ %s\n\n' "${command[*]}"
"build/release/cli/${command[@]}"

cat <<'TEXT'

In short: workers average inside their rack or not at all in most rounds, and now and then all of them meet, so that what one
learns soon reaches the others. Everyone still trains one model, and hardly anyone waits for the uplinks.

Now eight worker processes on this machine train a small network with that plan, for one epoch of Fashion-MNIST. (The plan is
that of the two racks; on this machine nothing is slowed down.)

TEXT

command=(dssync train --topology examples/topologies/two-racks.yaml --method ds-sync --epochs 1)
printf '$ %s\n\n' "${command[*]}"
"build/release/cli/${command[@]}"

cat <<'TEXT'

Try your own network: write it like examples/topologies/two-racks.yaml, then
  build/release/cli/dssync plan --topology FILE
TEXT
