# The commands of daily work. Each does its own set-up (scripts/setup.sh) and says what it does.

JOBS ?= $(shell nproc)
CXX_FILES = $(shell find src cli bench examples fuzz python tests -name '*.h' -o -name '*.cc')

say = @printf '\n==> %s\n' $(1)
build = $(call say,"building: preset $(1)") && cmake --preset $(1) $(2) --log-level=WARNING && cmake --build --preset $(1) -j $(JOBS)
check = $(call say,"testing: preset $(1)") && ctest --preset $(1) -j $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help demo test build bench bench-testbed bench-discovery bench-python fuzz golden asan tsan format format-check tidy clean test-dev test-fuzz test-pypi setup-build setup-test setup-bench setup-lint

help:  ## print this list
	@echo "make TARGET, where TARGET is one of"
	@sed -nE 's/^([a-z-]+):.*## (.*)/  \1\t\2/p' Makefile | expand -t 17

demo: build  ## build, train with four methods on an emulated network, compare them
	@scripts/demo.sh

test: setup-test  ## build and run everything that must hold: unit tests, command line, fuzzing for a minute
	@$(MAKE) --no-print-directory -j 3 test-dev test-fuzz test-pypi
	$(call say,"fuzzing: a bounded run of every target")
	@scripts/fuzz.sh
	$(call check,dev)

# The parts of `make test` that go side by side, so that no core waits for the network or for the last source of a build.
test-dev:
	$(call build,dev)
test-fuzz:
	$(call build,fuzz)
test-pypi:
	$(call say,"downloading PyTorch from PyPI for the test python.pypi")
	@scripts/python_pypi.sh --prepare build/dev/python/pypi || test $$? = 77

build: setup-build  ## build the release version of the tools and the library
	$(call build,release)

bench: setup-test  ## measure how fast the planner is, and what averaging costs over bare c10d
	$(call build,release,-D DSSYNC_BENCH=ON)
	$(call say,"measuring the planner")
	@build/release/bench/planner_bench
	$(call say,"measuring averages")
	@build/release/bench/averaging_bench

bench-testbed: setup-bench  ## measure how well TCP uses the links of an emulated network
	$(call build,release)
	$(call say,"measuring links")
	@bench/testbed_links.py build/release/cli/dssync

bench-discovery: setup-test  ## measure which of 15 emulated networks --topology auto finds, and how fast
	$(call build,release)
	$(call say,"discovering networks")
	@bench/discovery.py build/release/cli/dssync

bench-python: setup-test  ## measure what Python adds to a step; DistributedDataParallel and dssync side by side
	$(call build,release,-D DSSYNC_PYTHON_PACKAGE=ON)
	$(call say,"measuring the overhead of Python")
	@PYTHONPATH=build/release/python /usr/bin/python3 bench/python_overhead.py
	$(call say,"training on an emulated network with both")
	@PYTHONPATH=build/release/python /usr/bin/python3 bench/python_side_by_side.py build/release/cli/dssync

fuzz: setup-test  ## fuzz the readers: FUZZ_SECONDS=20 or FUZZ_RUNS=1000000 for each target
	$(call build,fuzz)
	@scripts/fuzz.sh

golden: export DSSYNC = $(CURDIR)/build/dev/cli/dssync
golden: export DSSYNC_EXAMPLES = $(CURDIR)/build/dev/examples
golden: setup-test  ## write the expected outputs in tests/golden and docs anew, to be looked at in the diff
	$(call build,dev)
	@/usr/bin/python3 tests/golden/golden_test.py --update
	@DSSYNC_UPDATE=1 /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/cli/test_docs.py

asan: setup-test  ## run the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(call build,asan-ubsan)
	$(call check,asan-ubsan)

tsan: setup-test  ## run the tests under ThreadSanitizer
	$(call build,tsan)
	$(call check,tsan)

format: setup-lint  ## format all C++ files in place
	clang-format-14 -i $(CXX_FILES)

format-check: setup-lint  ## fail where `make format` would change something
	clang-format-14 --dry-run --Werror $(CXX_FILES)

tidy: setup-lint  ## run clang-tidy over the library and the tools
	$(call build,tidy)

clean:  ## remove everything that was built
	rm -rf build

setup-build setup-test setup-bench setup-lint: setup-%:
	@scripts/setup.sh $*
