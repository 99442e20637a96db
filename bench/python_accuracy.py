#!/usr/bin/env python3
"""DistributedDataParallel and dssync in the same script, but for three lines: what a transformer with AdamW reaches
(python/examples/transformer.py and transformer_ddp.py), eight ranks under torchrun, several seeds.

    bench/python_accuracy.py [--python PYTHON] [--seeds 1 2 3] [--keep python_accuracy.jsonl] [--show]

PYTHON is an interpreter that has PyTorch 2 and the package (or PYTHONPATH does). Each result is added to a file as it comes, and
what the file has is not run again.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
METHODS = {"DDP": ["transformer_ddp.py"], "dssync": ["transformer.py"],
           "dssync, S at most 0.5": ["transformer.py", "--disagreement", "0.5"]}


class Results:
    """By script and seed, kept in a file of JSON lines."""

    def __init__(self, file):
        self._file = pathlib.Path(file)
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        self.found = {(result["method"], result["seed"]): result for result in map(json.loads, lines)}

    def add(self, method, result):
        with self._file.open("a") as file:
            file.write(json.dumps({"method": method, **result}) + "\n")
        self.found[method, result["seed"]] = result


def run(options, method, seed):
    script, *flags = METHODS[method]
    command = [options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "8", ROOT / "python/examples" / script,
               "--topology", options.topology, "--steps", options.steps, "--seed", seed, *flags]
    result = subprocess.run(list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
                            env=os.environ | {"OMP_NUM_THREADS": "1"})
    return json.loads(result.stdout.strip().splitlines()[-1])


def print_table(found, seeds):
    """Losses, and how far each method ends above DDP."""
    curves = {method: {seed: found[method, seed]["held_out_loss"] for seed in seeds if (method, seed) in found} for method in METHODS}
    curves = {method: by_seed for method, by_seed in curves.items() if by_seed}
    steps = list(next(curve for by_seed in curves.values() for curve in by_seed.values()))
    print(f"| | after {' / '.join(steps)} steps, mean of the seeds | at the end, by seed | above DDP |\n| --- | --- | --- | --- |")
    for method, by_seed in curves.items():
        means = " / ".join(f"{statistics.mean(curve[step] for curve in by_seed.values()):.3f}" for step in steps)
        ends = {seed: curve[steps[-1]] for seed, curve in by_seed.items()}
        worse = [end - curves["DDP"][seed][steps[-1]] for seed, end in ends.items() if seed in curves.get("DDP", {})]
        above = f"{statistics.mean(worse):+.3f}" if worse and method != "DDP" else ""
        print(f"| {method} | {means} | {' '.join(f'{end:.3f}' for end in ends.values())} | {above} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--topology", default=ROOT / "examples/topologies/two-racks.yaml", help="with eight workers")
    parser.add_argument("--keep", default="python_accuracy.jsonl", help="the file of results (default python_accuracy.jsonl)")
    parser.add_argument("--show", action="store_true", help="run nothing: print the table of what the file has")
    options = parser.parse_args()
    results = Results(options.keep)
    for seed in options.seeds:
        for method in options.methods:
            if (method, seed) not in results.found and not options.show:
                print(f"running: {method}, seed {seed}", file=sys.stderr, flush=True)
                results.add(method, run(options, method, seed))
    print_table(results.found, options.seeds)


if __name__ == "__main__":
    main()
