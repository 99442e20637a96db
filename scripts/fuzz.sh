#!/usr/bin/env bash
# Runs every fuzz target of build/fuzz for a bounded time, starting from fuzz/corpus. Status 1 after the first crash.
#
#   FUZZ_SECONDS=20      how long each target runs
#   FUZZ_RUNS=1000000    instead: how many inputs each target gets
#
# New inputs go to build/fuzz/corpus, inputs that crash to build/fuzz/crashes; the corpus in the repository stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -n ${FUZZ_RUNS:-} ]]; then
  bound="-runs=$FUZZ_RUNS"
else
  bound="-max_total_time=${FUZZ_SECONDS:-20}"
fi

count=0
for program in build/fuzz/fuzz/fuzz_*; do
  [[ -f $program && -x $program ]] || continue
  name=${program##*/fuzz_}
  found=build/fuzz/corpus/$name
  log=build/fuzz/$name.log
  mkdir -p "$found" build/fuzz/crashes
  echo "fuzz: $name ($bound)"
  if ! "$program" "$bound" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
    "-artifact_prefix=build/fuzz/crashes/$name-" "$found" "fuzz/corpus/$name" >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "fuzz: $name FAILED; the input is in build/fuzz/crashes" >&2
    exit 1
  fi
  echo "fuzz: $name took $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs without a crash"
  count=$((count + 1))
done
[[ $count -gt 0 ]] || {
  echo "fuzz: no targets in build/fuzz; build them with: make fuzz" >&2
  exit 1
}
