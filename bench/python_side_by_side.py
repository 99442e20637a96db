#!/usr/bin/env python3
"""DistributedDataParallel and dssync side by side, on an emulated network with a bottleneck: images per second and accuracy of
python/examples/fashion_mnist.py.

    bench/python_side_by_side.py build/release/cli/dssync [--python PYTHON] [--topology FILE] [--steps 150]

Every worker is a process in the network namespace of its host, with real TCP. PYTHON is an interpreter that has the package (or
PYTHONPATH does). Needs root or user namespaces.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

from testbed_links import network

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "python/examples/fashion_mnist.py"
METHODS = {"DDP (Gloo)": ["--ddp"], "dssync": []}


def run(net, options, seed, flags):
    """One training run with a worker on every host; what rank 0 found."""
    hosts = net.status()["hosts"]
    workers = []
    for rank, host in enumerate(hosts):
        variables = {"RANK": rank, "LOCAL_RANK": 0, "WORLD_SIZE": len(hosts), "MASTER_ADDR": hosts[0]["address"],
                     "MASTER_PORT": 29500, "GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": 1}
        command = ["env", *(f"{name}={value}" for name, value in variables.items()), options.python, SCRIPT,
                   "--topology", options.topology, "--steps", options.steps, "--batch", options.batch, "--width", options.width,
                   "--seed", seed, *flags]
        workers.append(net.start(host["name"], *command))
    results = [worker.communicate() for worker in workers]
    for host, worker, (_, errors) in zip(hosts, workers, results):
        if worker.returncode != 0:
            sys.exit(f"{host['name']}: {errors}")
    return json.loads(results[0][0].splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--topology", type=pathlib.Path, default=ROOT / "examples/topologies/contended-racks.yaml")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch", type=int, default=16, help="images of each worker in a step")
    parser.add_argument("--width", type=int, default=16, help="of the model")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each method, with a seed each")
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    options = parser.parse_args()
    options.topology = options.topology.resolve()
    with tempfile.TemporaryDirectory() as state:
        os.environ["DSSYNC_STATE"] = state  # away from the testbeds of others
        found = {method: [] for method in METHODS}
        for seed in range(options.seed, options.seed + options.repeat):
            for method, flags in METHODS.items():
                print(f"running: {method}, seed {seed}", file=sys.stderr, flush=True)
                with network(options.tool.resolve(), options.topology.read_text()) as net:
                    found[method].append(run(net, options, seed, flags))
    print(f"{options.topology.name}, {found['dssync'][0]['parameter_bytes'] / 1e3:.0f} kB of parameters, {options.steps} steps, "
          f"batches of {options.batch} on each worker; {options.repeat} runs, medians (and the range)\n")
    print("| | images per second | test accuracy |\n| --- | --- | --- |")
    for method, runs in found.items():
        speeds = [run["images_per_second"] for run in runs]
        accuracies = [100 * run["test_accuracy"] for run in runs]
        print(f"| {method} | {statistics.median(speeds):.0f} ({min(speeds):.0f} to {max(speeds):.0f}) | "
              f"{statistics.median(accuracies):.1f} % ({min(accuracies):.1f} to {max(accuracies):.1f}) |")


if __name__ == "__main__":
    main()
