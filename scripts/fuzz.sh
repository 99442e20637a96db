#!/usr/bin/env bash
# Runs every fuzz target of build/fuzz for a bounded time, starting from fuzz/corpus, as many at once as there are cores.
# Status 1 after a crash.
#
#   FUZZ_SECONDS=20      how long each target runs
#   FUZZ_RUNS=1000000    instead: how many inputs each target gets
#
# New inputs go to build/fuzz/corpus, inputs that crash to build/fuzz/crashes; the corpus in the repository stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -n ${FUZZ_RUNS:-} ]]; then
  export bound="-runs=$FUZZ_RUNS"
else
  export bound="-max_total_time=${FUZZ_SECONDS:-20}"
fi

fuzz() {  # program
  local name=${1##*/fuzz_}
  local found=build/fuzz/corpus/$name log=build/fuzz/$name.log
  mkdir -p "$found" build/fuzz/crashes
  echo "fuzz: $name ($bound)"
  if ! "$1" "$bound" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
    "-artifact_prefix=build/fuzz/crashes/$name-" "$found" "fuzz/corpus/$name" >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "fuzz: $name FAILED; the input is in build/fuzz/crashes" >&2
    return 1
  fi
  echo "fuzz: $name took $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs without a crash"
}
export -f fuzz

programs=()
for program in build/fuzz/fuzz/fuzz_*; do
  [[ -f $program && -x $program ]] && programs+=("$program")
done
[[ ${#programs[@]} -gt 0 ]] || {
  echo "fuzz: no targets in build/fuzz; build them with: make fuzz" >&2
  exit 1
}
printf '%s\0' "${programs[@]}" | xargs -0 -P "$(nproc)" -I '{}' bash -c 'fuzz "$1"' fuzz '{}'
