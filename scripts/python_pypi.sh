#!/usr/bin/env bash
# Tests the Python package with PyTorch from PyPI: makes an environment in FOLDER, installs the package in it with pip, as a
# user would, and runs its tests. What is there already is not made again.
#
#   scripts/python_pypi.sh FOLDER [options of python/tests/run.py]
#
# Where PyPI cannot be reached, says so in one line and ends with status 77.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
shift

torch=2.13.0
packages=("torch==$torch" numpy pytest)
build_tool="scikit-build-core>=0.8"  # which pip fetches anew for every build
python=$folder/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK=1

fetch() {  # pip's arguments
  local log
  log=$("$python" -m pip "$@" --quiet 2>&1) && return
  echo "skipped: PyPI cannot be reached (pip $*: $(tail -n 1 <<<"$log"))"
  exit 77
}

[[ -x $python ]] || /usr/bin/python3 -m venv "$folder"
if [[ ! -e $folder/has-$torch ]]; then
  fetch install "${packages[@]}"
  touch "$folder/has-$torch"
fi
fetch download --no-deps --dest "$folder/build-tool" "$build_tool"
# Compiled quickly, and without the command line tool, which $DSSYNC names: it is the same for all versions of PyTorch.
CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) "$python" -m pip install --quiet . --config-settings=build-dir="$folder/build" \
  --config-settings=cmake.define.DSSYNC_CLI=OFF --config-settings=cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O1
exec "$python" python/tests/run.py "$@"
