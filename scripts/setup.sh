#!/usr/bin/env bash
# Installs the Debian packages that dssync needs, and only those that are missing.
#
#   scripts/setup.sh build   what `make build` and `make demo` need
#   scripts/setup.sh python  what `pip install .` needs beside a PyTorch from PyPI
#   scripts/setup.sh test    what `make build` and `make test` need
#   scripts/setup.sh bench   what `make build` and `make bench-testbed` need
#   scripts/setup.sh lint    what `make format` and `make tidy` need
#
# Asks nothing. Does not touch apt when nothing is missing; otherwise it needs root or sudo.
set -euo pipefail

compile_packages=(
  cmake               # configures the build
  ninja-build         # runs the build
  g++                 # compiles C++20
  libfmt-dev          # formats text and numbers
  libyaml-cpp-dev     # reads topology files
  libcli11-dev        # parses the command line
  nlohmann-json3-dev  # writes --format json and training logs, reads logs
  zlib1g-dev          # reads compressed data sets, checks checkpoints
)
build_packages=(
  "${compile_packages[@]}"
  make                # runs the targets of the Makefile
  iproute2            # ip and tc, with which testbeds are built
  libtorch-dev        # PyTorch for C++: tensors, autograd, c10d
  libgloo-dev         # the transport of c10d's process groups
  libopenblas0-pthread  # matrices; Debian's default BLAS is the slow reference
  dataset-fashion-mnist  # what dssync train learns
)
python_packages=(
  "${compile_packages[@]}"
  python3-dev         # compiles the Python package
  python3-venv        # the environment to install it in
)
test_packages=(
  libgtest-dev        # unit tests
  libgmock-dev        # matchers for the unit tests
  libbenchmark-dev    # the benchmark of the planner, which the dev build compiles too
  python3             # tests of the repository
  python3-pytest      # tests of the command line
  python3-dev         # compiles the Python package
  python3-torch       # its tests with Debian's PyTorch
  pybind11-dev        # its bindings, as python3-torch was built
  mypy                # its types
  python3-venv        # its tests with PyPI's PyTorch
  chromium            # opens the page of dssync report
  clang-14            # compiles the fuzz targets
  libclang-rt-14-dev  # libFuzzer and the sanitizers of clang
)
bench_packages=(
  python3             # runs bench/testbed_links.py
  iperf3              # measures links with TCP
)
lint_packages=(
  clang-14         # compiles what clang-tidy reads
  clang-format-14  # make format, make format-check
  clang-tidy-14    # make tidy
)

fail() {
  echo "setup: $*" >&2
  exit 1
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null; then
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    fail "installing needs root, and there is no sudo. As root, run: apt-get install ${missing[*]}"
  fi
}

case "${1:-}" in
  build) wanted=("${build_packages[@]}") ;;
  python) wanted=("${python_packages[@]}") ;;
  test) wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
  bench) wanted=("${build_packages[@]}" "${bench_packages[@]}") ;;
  lint) wanted=("${build_packages[@]}" "${lint_packages[@]}") ;;
  *)
    echo "usage: scripts/setup.sh build|python|test|bench|lint" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  fail "this is not Debian or a system like it (no dpkg-query or apt-get)." \
    "Install what these Debian packages hold, then run cmake --preset release: ${wanted[*]}"
fi

missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [[ ${#missing[@]} == 0 ]]; then
  echo "setup: all ${#wanted[@]} packages for '$1' are there"
  exit 0
fi

# A fresh machine may still be updating itself: wait for it.
apt_options=(-q -o DPkg::Lock::Timeout=300)
echo "setup: installing ${#missing[@]} of ${#wanted[@]} packages for '$1': ${missing[*]}"
as_root apt-get "${apt_options[@]}" update || fail "apt-get update failed; is the network reachable?"
as_root apt-get "${apt_options[@]}" install -y --no-install-recommends "${missing[@]}" ||
  fail "apt-get could not install: ${missing[*]} (dssync is made for Debian 12)"
echo "setup: done"
