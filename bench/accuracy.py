#!/usr/bin/env python3
"""What every method reaches at the same hyperparameters, for the paper's three domains; prints the tables of docs/accuracy.md.

    bench/accuracy.py build/release/cli/dssync [--workloads transformer cnn ...] [--methods ds-sync asp ...] [--seeds 1 2 3]
                      [--variant NAME=FLAGS] [--keep runs.jsonl] [--show]
    bench/accuracy.py build/release/cli/dssync --momentum

Eight workers on this machine, the network of examples/topologies/two-racks.yaml (for the plan: nothing is slowed down). Each run
that is done becomes a line of the file that --keep names (default accuracy.jsonl), and is not repeated, so that a stopped
benchmark goes on where it was; --show prints tables of what the file has. bsp-ring is always among the methods: the others
are measured against it, seed by seed. The file knows nothing of builds: a new build needs a new file. --variant adds a row: ds-sync with further flags, or another method if they name one.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOPOLOGY = "examples/topologies/two-racks.yaml"
BASELINE = "bsp-ring"

IMAGES = ["--data", "fashion-mnist", "--epochs", "4", "--evaluate-every-iterations"]


class Workload:
    """Flags, what is looked at (a key of an evaluation), and the bounds that ds-sync has to keep."""

    def __init__(self, flags, key, unit, scale, bound, bound_on_the_way=None, way_from=0):
        self.flags, self.key, self.unit, self.scale = flags, key, unit, scale
        self.bound, self.bound_on_the_way, self.way_from = bound, bound_on_the_way, way_from

    def loss_against(self, value, baseline):
        """How much worse than the baseline, in `unit`."""
        return (value - baseline) * self.scale * (1 if self.key == "test_loss" else -1)


# Bounds: at the end, and at every evaluation after the iteration `way_from`.
WORKLOADS = {
    "transformer": Workload(
        ["--data", "text", "--model", "transformer", "--optimizer", "adamw", "--learning-rate", "0.003", "--betas", "0.9,0.95",
         "--clip-norm", "1", "--batch", "4", "--context", "64", "--iterations", "600", "--evaluate-every-iterations", "50",
         "--test-examples", "1024"], "test_loss", "nats per byte", 1, 0.03, 0.05, 100),
    "cnn": Workload([*IMAGES, "50", "--model", "cnn"], "test_accuracy", "points", 100, 0.15, 0.5, 50),
    "cnn-adamw": Workload([*IMAGES, "50", "--model", "cnn", "--optimizer", "adamw"], "test_accuracy", "points", 100, 0.15, 0.5, 50),
    "resnet": Workload([*IMAGES, "100", "--model", "resnet"], "test_accuracy", "points", 100, 0.15, 0.5, 50),
    "deepfm": Workload(
        ["--data", "clicks", "--model", "deepfm", "--optimizer", "adam", "--learning-rate", "0.01", "--weight-decay", "0",
         "--batch", "256", "--iterations", "600", "--evaluate-every-iterations", "50"], "test_auc", "AUC", 1, 0.001),
}

METHODS = {
    BASELINE: ["--method", "bsp-ring"],
    "ds-sync": ["--method", "ds-sync", "--no-adapt"],  # a busy machine must not change the plan
    "ds-sync-exact-racks": ["--method", "ds-sync", "--no-adapt", "--exact-inside", "rack"],
    "ds-sync-uncorrected": ["--method", "ds-sync", "--no-adapt", "--no-noise-correction"],
    "published": ["--method", "ds-sync", "--schedule", "published"],
    "local-sgd": ["--method", "local-sgd"],
    "local-sgd-uncorrected": ["--method", "local-sgd", "--no-noise-correction"],
    "ssp": ["--method", "ssp"],
    "asp": ["--method", "asp"],
}
# What ds-sync does with momentum, and the bytes that it costs for each byte of the parameters.
TREATMENTS = {
    "local": (["--optimizer-state", "local"], 1),
    "rotating, 8 parts": (["--optimizer-state", "rotating", "--state-period", "8"], 1 + 1 / 8),
    "rotating, 4 parts": (["--optimizer-state", "rotating", "--state-period", "4"], 1 + 1 / 4),
    "rotating, 2 parts": (["--optimizer-state", "rotating", "--state-period", "2"], 1 + 1 / 2),
    "averaged": (["--optimizer-state", "averaged"], 2),
}


class Runs:
    """Runs of `dssync train`, each once. A line of the file is one run: its flags, its summary, its evaluations."""

    def __init__(self, tool, file, only_known=False):
        self.tool, self.file, self.only_known = tool, pathlib.Path(file), only_known
        self.known = {}
        if self.file.exists():
            for line in self.file.read_text().splitlines():
                try:
                    run = json.loads(line)
                except ValueError:
                    continue  # the last line of a benchmark that was killed
                self.known[run["flags"]] = run

    def run(self, flags, seed):
        """The run with these flags; None where it failed, or where only known ones are wanted and it is not."""
        words = [*flags, "--seed", str(seed)]
        name = shlex.join(words)
        if name not in self.known and not self.only_known:
            run = self.carried_out(name, words)
            if run:
                self.known[name] = run
                with self.file.open("a") as file:
                    file.write(json.dumps(run) + "\n")
        return self.known.get(name)

    def carried_out(self, name, words):
        """None where it failed."""
        print("running:", name, file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "run.jsonl"
            command = [self.tool, "train", "--topology", TOPOLOGY, "--format", "json", "--log", str(log), *words]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                print(f"failed ({done.returncode}):\n{done.stderr[-2000:]}", file=sys.stderr, flush=True)
                return None
            events = [json.loads(line) for line in log.read_text().splitlines()]
        evaluations = [{key: value for key, value in event.items() if key != "event"}
                       for event in events if event["event"] == "evaluated"]
        return {"flags": name, "summary": json.loads(done.stdout), "evaluations": evaluations}


class Row:
    """A method's runs of one workload, by seed."""

    def __init__(self, workload, runs):
        self.workload, self.runs = workload, runs

    def finals(self):
        return [run["summary"][self.workload.key] for run in self.runs.values()]

    def curve(self, seed):
        return {one["iteration"]: one[self.workload.key] for one in self.runs[seed]["evaluations"]}

    def differences(self, other):
        """By iteration: the mean over seeds of how much worse it is than the other row."""
        seeds = [seed for seed in self.runs if seed in other.runs]
        own, others = {seed: self.curve(seed) for seed in seeds}, {seed: other.curve(seed) for seed in seeds}
        common = set.intersection(*(set(own[seed]) & set(others[seed]) for seed in seeds)) if seeds else set()
        return {iteration: statistics.mean(self.workload.loss_against(own[seed][iteration], others[seed][iteration]) for seed in seeds)
                for iteration in sorted(common)}


def spread(values):
    return max(values) - min(values) if values else 0


def verdict(workload, differences):
    """Whether the bounds hold, in words."""
    final = list(differences.values())[-1]
    words = [f"end {final:+.4f}, at most {workload.bound}: {'pass' if final <= workload.bound else 'FAIL'}"]
    way = [value for iteration, value in differences.items() if iteration > workload.way_from]
    if workload.bound_on_the_way is not None and way:
        worst = max(way)
        words.append(f"worst after {workload.way_from} {worst:+.4f}, at most {workload.bound_on_the_way}: "
                     f"{'pass' if worst <= workload.bound_on_the_way else 'FAIL'}")
    return "; ".join(words)


def print_tables(name, workload, rows):
    """Means and spread; then the differences to the baseline at every evaluation; then whether the bounds hold."""
    baseline = rows.get(BASELINE)
    print(f"\n## {name}\n\n`{shlex.join(workload.flags)}`\n")
    print(f"| method | mean of {workload.key} | spread | by seed | worse than {BASELINE}, {workload.unit} | kB sent per worker and iteration |")
    print("| --- | --- | --- | --- | --- | --- |")
    differences = {}
    for method, row in rows.items():
        finals = row.finals()
        differences[method] = row.differences(baseline) if baseline else {}
        worse = f"{list(differences[method].values())[-1]:+.4f}" if differences[method] else ""
        sent = statistics.mean(run["summary"]["bytes_sent_per_iteration"] for run in row.runs.values()) / 1e3
        by_seed = " ".join(f"{value:.4f}" for value in finals)
        print(f"| {method} | {statistics.mean(finals):.4f} | {spread(finals):.4f} | {by_seed} | {worse} | {sent:.0f} |")
    others = {method: values for method, values in differences.items() if method != BASELINE and values}
    if not others:
        return
    print(f"\nWorse than {BASELINE} by, in {workload.unit}, after so many iterations:\n")
    print("| iteration | " + " | ".join(others) + " |\n| --- |" + " --- |" * len(others))
    for iteration in sorted(set.union(*(set(values) for values in others.values()))):
        cells = [f"{values[iteration]:+.4f}" if iteration in values else "" for values in others.values()]
        print(f"| {iteration} | " + " | ".join(cells) + " |")
    print("\n" + "\n".join(f"- {method}: {verdict(workload, values)}" for method, values in others.items()), flush=True)


def compare(runs, workloads, methods, seeds):
    for name in workloads:
        workload = WORKLOADS[name]
        rows = {}
        for method, flags in methods.items():
            found = {seed: runs.run([*workload.flags, *flags], seed) for seed in seeds}
            found = {seed: run for seed, run in found.items() if run}
            if found:
                rows[method] = Row(workload, found)
        if rows:
            print_tables(name, workload, rows)


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


def momentum(runs, seeds):
    """Momentum at equal bytes: what is sent for it is saved on the parameters."""
    print("| momentum | limit on S | mean of test accuracy, % | by seed | kB sent per worker and iteration |")
    print("| --- | --- | --- | --- | --- |")
    rows = [(label, flags, limit_for(runs.tool, 1 / factor)) for label, (flags, factor) in TREATMENTS.items()]
    rows.append(("averaged, twice the bytes", TREATMENTS["averaged"][0], 0.5))
    for label, flags, limit in rows:
        found = [runs.run([*WORKLOADS["cnn"].flags, "--method", "ds-sync", *flags, "--disagreement", str(limit)], seed) for seed in seeds]
        summaries = [run["summary"] for run in found if run]
        if not summaries:
            continue
        accuracies = [100 * summary["test_accuracy"] for summary in summaries]
        sent = statistics.mean(summary["bytes_sent_per_iteration"] for summary in summaries) / 1e3
        print(f"| {label} | {limit} | {statistics.mean(accuracies):.2f} | {' '.join(f'{one:.2f}' for one in accuracies)} | {sent:.0f} |", flush=True)


def variant(text):
    name, equals, flags = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=FLAGS, but found {text!r}")
    words = shlex.split(flags)
    return name, words if "--method" in words else ["--method", "ds-sync", "--no-adapt", *words]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--variant", type=variant, action="append", default=[], metavar="NAME=FLAGS")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--momentum", action="store_true", help="instead: cnn with each treatment of momentum, at equal bytes")
    parser.add_argument("--keep", default="accuracy.jsonl", help="the file of finished runs (default accuracy.jsonl)")
    parser.add_argument("--show", action="store_true", help="run nothing: print tables of what the file has")
    options = parser.parse_args()
    runs = Runs(options.tool, options.keep, options.show)
    if options.momentum:
        momentum(runs, options.seeds)
        return
    wanted = {name: flags for name, flags in METHODS.items() if name == BASELINE or name in options.methods}
    compare(runs, options.workloads, {**wanted, **dict(options.variant)}, options.seeds)


if __name__ == "__main__":
    main()
