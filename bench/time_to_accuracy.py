#!/usr/bin/env python3
"""Time to a test accuracy on the contended network, for the exact methods and ds-sync; prints a table of docs/results.md.

    bench/time_to_accuracy.py build/release/cli/dssync [--topology FILE] [--methods METHOD ...] [--seeds 1 2 3]
                               [--iterations N] [--accuracy 88] [--keep FOLDER]

Every run trains `cnn` on Fashion-MNIST with the defaults of `dssync train` and a test every 20 iterations, on
the network of FILE as `dssync train --emulate` builds it. For each seed the methods take turns.
The time is that of the iterations up to the first test that reaches the accuracy, without the tests themselves, as in
`dssync report --accuracy`. A run takes two to ten minutes. A method may carry options, such as "ds-sync --overlap combine --disagreement 1.375".
With --keep, the logs stay in FOLDER, for `dssync report`, and runs that finished there are not repeated.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
METHODS = ["bsp-hierarchical", "ds-sync", "ds-sync --overlap combine --disagreement 1.375"]


class Run:
    """What the log of one run says; None where it did not reach the accuracy."""

    def __init__(self, log, accuracy):
        events = [json.loads(line) for line in log.read_text().splitlines()]
        finished = [event for event in events if event["event"] == "finished"]
        self.is_complete = bool(finished)
        if not self.is_complete:
            return
        reached = [event for event in events if event["event"] == "evaluated" and event["test_accuracy"] >= accuracy]
        self.seconds = reached[0]["training_seconds"] if reached else None
        self.iteration = reached[0]["iteration"] if reached else None
        self.final = finished[0]["test_accuracy"]
        self.per_iteration = finished[0]["training_seconds"] / finished[0]["iterations"]


def train(arguments, method, seed, folder):
    log = folder / f"{method.replace(' ', '').replace('--', '-')}-{seed}.jsonl"
    if log.exists() and Run(log, arguments.accuracy / 100).is_complete:
        return Run(log, arguments.accuracy / 100)
    command = [arguments.tool, "train", "--emulate", "--topology", arguments.topology, "--data", "fashion-mnist", "--model", "cnn",
               "--epochs", arguments.epochs, "--evaluate-every-iterations", 20, "--seed", seed, "--log", log,
               "--method", *method.split()]
    if arguments.iterations:
        command += ["--iterations", arguments.iterations]
    command = [str(word) for word in command]
    print("running:", " ".join(command[1:]), file=sys.stderr, flush=True)
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    run = Run(log, arguments.accuracy / 100)
    print(f"  {shown(run.seconds)} s, {100 * run.final:.2f} %, {1000 * run.per_iteration:.0f} ms per iteration; "
          f"load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    return run


def shown(value, form=".1f"):
    return "never" if value is None else format(value, form)


def median(values):
    return None if None in values else statistics.median(values)


def table(arguments, runs):
    exact = [method for method in runs if method.startswith("bsp") and median([run.seconds for run in runs[method]])]
    best = min(exact, key=lambda method: median([run.seconds for run in runs[method]]), default=None)
    print(f"| method | seconds to {arguments.accuracy:g} % | by seed | iterations to it | sooner than the best BSP "
          "| at the end, mean % | by seed | an iteration |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for method, group in runs.items():
        seconds = median([run.seconds for run in group])
        ratio = None if best is None or seconds is None else median([run.seconds for run in runs[best]]) / seconds
        cells = [f"`{method}`", shown(seconds), " ".join(shown(run.seconds) for run in group),
                 " ".join(shown(run.iteration, "d") for run in group), "" if ratio is None else f"{ratio:.2f} times",
                 f"{100 * statistics.mean(run.final for run in group):.2f}",
                 " ".join(f"{100 * run.final:.2f}" for run in group),
                 f"{1000 * statistics.median(run.per_iteration for run in group):.0f} ms"]
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--topology", type=lambda path: pathlib.Path(path).resolve(),
                        default=ROOT / "examples/topologies/contended-racks.yaml")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--iterations", type=int, help="stop after so many, as `dssync train --iterations` does")
    parser.add_argument("--accuracy", type=float, default=88, help="in percent")
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (arguments.keep or pathlib.Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        runs = {method: [] for method in arguments.methods}
        for seed in arguments.seeds:
            for method in arguments.methods:
                runs[method].append(train(arguments, method, seed, folder))
        table(arguments, runs)


if __name__ == "__main__":
    main()
