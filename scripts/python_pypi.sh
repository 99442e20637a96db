#!/usr/bin/env bash
# Tests the Python package with PyTorch from PyPI: makes an environment in FOLDER, builds a wheel and installs it there with
# pip, as a user would, and runs its tests. What is there already is not made again.
#
#   scripts/python_pypi.sh FOLDER [options of python/tests/run.py]
#   scripts/python_pypi.sh --prepare FOLDER   only makes the environment, which downloads much
#
#   DSSYNC_BUILD=build/dev   a build of these sources, whose libraries without PyTorch the wheel gets
#
# Where PyPI cannot be reached, says so in one line and ends with status 77.
set -euo pipefail
cd "$(dirname "$0")/.."
prepares=false
[[ $1 != --prepare ]] || { prepares=true && shift; }
folder=$1
shift

torch=2.13.0
python=$folder/bin/python

pip() {
  "$python" -m pip --quiet --disable-pip-version-check "$@"
}

mkdir -p "$folder"
exec {lock}>"$folder/lock"
flock "$lock"  # whoever prepares may not have finished
[[ -x $python ]] || /usr/bin/python3 -m venv "$folder"
# Every build needs this small package, so it shows whether there is a PyPI. Whatever fails afterwards is a failure.
if ! log=$(pip download --no-deps --dest "$folder/build-tool" "scikit-build-core>=0.8" 2>&1); then
  echo "skipped: PyPI cannot be reached ($(tail -n 1 <<<"$log"))"
  exit 77
fi
if [[ ! -e $folder/has-$torch ]]; then
  pip install "torch==$torch" numpy pytest
  touch "$folder/has-$torch"
fi
if $prepares; then exit; fi

# Compiled quickly, and without the command line tool, which is the same for all versions of PyTorch.
settings=(--config-settings=build-dir="$folder/build" --config-settings=cmake.define.DSSYNC_CLI=OFF
          --config-settings=cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O1)
if [[ -n ${DSSYNC_BUILD:-} ]]; then
  rm -rf "$folder/prebuilt"
  cmake --install "$DSSYNC_BUILD" --prefix "$folder/prebuilt" >/dev/null
  settings+=(--config-settings=cmake.define.DSSYNC_PREBUILT="$(realpath "$folder/prebuilt")")
fi
rm -rf "$folder/wheel"
CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) pip wheel . --no-deps --wheel-dir "$folder/wheel" "${settings[@]}"
pip install --no-deps --force-reinstall "$folder"/wheel/dssync-*.whl
exec "$python" python/tests/run.py "$@"
