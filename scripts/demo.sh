#!/usr/bin/env bash
# The main job: trains the same model with four methods on an emulated network with a bottleneck, and compares them.
# `make demo` builds and then runs this. The logs and the report stay in build/demo.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=build/release/cli/dssync
network=examples/topologies/contended-racks.yaml
folder=build/demo
mkdir -p "$folder"
SECONDS=0
rm -f "$folder"/*.jsonl

run() {
  printf '$ %s\n\n' "dssync $*"
  "$tool" "$@"
}

cat <<'TEXT'

Eight workers train one model together: four in rack A, four in rack B. A host's network card moves 40 Mbit/s, but all
traffic between the racks shares uplinks of 10 Mbit/s. Averaging everything among all workers after every iteration makes
everyone wait for those uplinks. So we ask: who should average with whom, when, and in how many bits, if the replicas may
drift apart a little?

TEXT
run plan --topology "$network" --bytes 424kB --codec auto

emulate=(--emulate)
if said=$("$tool" testbed up --topology "$network" 2>"$folder/problem.txt"); then
  "$tool" testbed down "${said%%:*}" >/dev/null  # what it says begins with the name that it made up
  cat <<'TEXT'

Now four methods train on that network, one after another, with the same data and the same model: Fashion-MNIST, 20,000
images, one epoch. The network is emulated on this machine: each host is a network namespace, and its links are as slow as
the file says. Every message is real TCP.

TEXT
else
  emulate=()
  printf '\nThis machine cannot emulate the network, so the workers use loopback, where nothing is slow:\n  %s\n' "$(cat "$folder/problem.txt")"
  printf 'The comparison below shows that all methods train, but not what they gain.\n\n'
fi

train=(--topology "$network" "${emulate[@]}" --data fashion-mnist --model cnn --train-examples 20000 --epochs 1
       --evaluate-every-iterations 13)
for method in bsp-ring bsp-hierarchical ssp ds-sync; do
  own=()
  [[ $method != ds-sync ]] || own=(--codec auto)
  run train --method "$method" "${own[@]}" "${train[@]}" --log "$folder/$method.jsonl"
  echo
done

run report "$folder"/{bsp-ring,bsp-hierarchical,ssp,ds-sync}.jsonl --accuracy 80% -o "$folder/report.html"

cat <<TEXT

That took $((SECONDS / 60)) min $((SECONDS % 60)) s.
The whole comparison, with curves, links and the plan: open $folder/report.html in a browser.
Try your own network: write it like $network, then
  $tool plan --topology FILE
  $tool bench --topology FILE --emulate
TEXT
