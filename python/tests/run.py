"""Runs the tests of the Python package with the PyTorch of this interpreter: those of one process, then those of several
ranks under torchrun, many in one launch because a launch takes seconds.

usage: run.py [--ranks 2 4 5] [pytest options...]

PYTHONPATH or the environment has the package. $DSSYNC_CPP_FRONT names the program of cpp_front.cc, without which what needs it
is skipped.
"""

import argparse
import os
import pathlib
import subprocess
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
# torchrun of 1.13 cannot read its own default of these two with Python 3.11.
OLD_TORCHRUN = ["--redirects", "1", "--tee", "1"] if int(torch.__version__.split(".")[0]) < 2 else []
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]


def torchrun(ranks, *command):
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks), *OLD_TORCHRUN, *command]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4, 5])
    options, others = parser.parse_known_args()
    launches = [[sys.executable, *PYTEST, str(HERE / "single"), *others]]
    launches += [torchrun(ranks, *PYTEST, str(HERE / "ranks"), *others) for ranks in options.ranks]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    failed = 0
    for launch in launches:
        print("$", " ".join(launch[1:]), flush=True)
        failed |= subprocess.run(launch, env=environment).returncode
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
