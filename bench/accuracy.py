#!/usr/bin/env python3
"""Test accuracy of every method on Fashion-MNIST at the same hyperparameters; prints the tables of docs/accuracy.md.

    bench/accuracy.py build/release/cli/dssync [--seeds 1 2 3] [--epochs 4] [--only methods|momentum] [--keep FILE]

Eight workers on this machine, the network of examples/topologies/two-racks.yaml (for the plan: nothing is slowed down).
A run takes about half a minute on two cores. With --keep, finished runs are kept in FILE and not repeated.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOPOLOGY = "examples/topologies/two-racks.yaml"

METHODS = {
    "bsp-ring": ["--method", "bsp-ring"],
    "ds-sync": ["--method", "ds-sync"],
    "ds-sync, S at most 1": ["--method", "ds-sync", "--disagreement", "1"],
    "ds-sync, overlapped": ["--method", "ds-sync", "--overlap"],
    "ds-sync, published schedule": ["--method", "ds-sync", "--schedule", "published"],
    "bsp-hierarchical": ["--method", "bsp-hierarchical"],
    "ps": ["--method", "ps"],
    "ssp, staleness 3": ["--method", "ssp", "--staleness", "3"],
    "asp": ["--method", "asp"],
    "local-sgd, every 4th": ["--method", "local-sgd", "--period", "4"],
    "local-sgd, every 16th": ["--method", "local-sgd", "--period", "16"],
}
# What it does with momentum, and the bytes that it costs for each byte of the parameters.
TREATMENTS = {
    "local": (["--optimizer-state", "local"], 1),
    "rotating, 8 parts": (["--optimizer-state", "rotating", "--state-period", "8"], 1 + 1 / 8),
    "rotating, 4 parts": (["--optimizer-state", "rotating", "--state-period", "4"], 1 + 1 / 4),
    "rotating, 2 parts": (["--optimizer-state", "rotating", "--state-period", "2"], 1 + 1 / 2),
    "averaged": (["--optimizer-state", "averaged"], 2),
}


class Runs:
    """Runs of `dssync train`, each once."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.file = pathlib.Path(arguments.keep) if arguments.keep else None
        self.known = json.loads(self.file.read_text()) if self.file and self.file.exists() else {}

    def result(self, flags, seed):
        command = [self.arguments.tool, "train", "--topology", TOPOLOGY, "--data", "fashion-mnist", "--model", "cnn",
                   "--epochs", self.arguments.epochs, "--evaluate-every", "0", "--seed", seed, "--format", "json", *flags]
        command = [str(word) for word in command]
        name = " ".join(command[1:])
        if name not in self.known:
            print("running:", name, file=sys.stderr, flush=True)
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
            self.known[name] = json.loads(done.stdout)
            if self.file:
                self.file.write_text(json.dumps(self.known, indent=1))
        return self.known[name]

    def row(self, label, flags):
        results = [self.result(flags, seed) for seed in self.arguments.seeds]
        accuracies = [100 * result["test_accuracy"] for result in results]
        sent = statistics.mean(result["bytes_sent_per_iteration"] for result in results) / 1e3
        spread = " ".join(f"{accuracy:.2f}" for accuracy in accuracies)
        return f"| {label} | {statistics.mean(accuracies):.2f} | {spread} | {sent:.0f} |"


def plan(tool, limit):
    command = [tool, "plan", "--topology", TOPOLOGY, "--disagreement", str(limit), "--format", "json"]
    return json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)


def limit_for(tool, share):
    """The limit on S whose plan costs `share` of the default one's time."""
    if share == 1:
        return 0.5
    seconds = plan(tool, 0.5)["cost"]["seconds_per_iteration"] * share
    low, high = 0.05, 20.0
    for _ in range(30):
        middle = (low + high) / 2
        if plan(tool, middle)["cost"]["seconds_per_iteration"] > seconds:
            low = middle
        else:
            high = middle
    return round(high, 3)  # the planner's answer changes in steps; this is the smallest limit that costs no more


def methods(runs):
    print("| method | mean of test accuracy, % | by seed | kB sent per worker and iteration |\n| --- | --- | --- | --- |")
    for label, flags in METHODS.items():
        print(runs.row(label, flags), flush=True)


def momentum(runs):
    print("| momentum | limit on S | mean of test accuracy, % | by seed | kB sent per worker and iteration |")
    print("| --- | --- | --- | --- | --- |")
    for label, (flags, factor) in TREATMENTS.items():
        limit = limit_for(runs.arguments.tool, 1 / factor)
        print(runs.row(f"{label} | {limit}", ["--method", "ds-sync", *flags, "--disagreement", limit]), flush=True)
    print(runs.row("averaged, twice the bytes | 0.5", ["--method", "ds-sync", *TREATMENTS["averaged"][0]]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--only", choices=["methods", "momentum"])
    parser.add_argument("--keep")
    runs = Runs(parser.parse_args())
    if runs.arguments.only != "momentum":
        methods(runs)
    if runs.arguments.only != "methods":
        momentum(runs)


if __name__ == "__main__":
    main()
