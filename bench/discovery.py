#!/usr/bin/env python3
"""What `--topology auto` finds on emulated networks: random racks and flat ones. Prints the table of docs/adaptation.md.

    bench/discovery.py build/release/cli/dssync [--hosts 8,16,32] [--networks 4] [--nics 20,40]

Needs root or user namespaces. 32 hosts on two cores need NICs of 20 Mbit/s."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests/cli"))

from random_networks import Network, random_network  # noqa: E402

JOB = ["--data", "synthetic", "--train-examples", 512, "--test-examples", 64, "--batch", 8, "--model", "mlp", "--iterations", 1]


def discover(tool, network):
    """The seconds that it took, and the nodes that were found."""
    with tempfile.TemporaryDirectory() as folder:
        file, log = pathlib.Path(folder, "network.yaml"), pathlib.Path(folder, "run.jsonl")
        file.write_text(network.file())
        command = [tool, "train", "--topology", "auto", "--emulate", file, "--log", log, *JOB]
        result = subprocess.run([*map(str, command)], capture_output=True, encoding="utf-8")
        if result.returncode != 0:
            sys.exit(result.stderr)
        told = [json.loads(line) for line in log.read_text().splitlines()][1]
        taken = re.search(r"found this network in ([\d.]+) s:\n# .*; (\d+) sets.* differs by (\d+) %", result.stderr)
        return *map(float, taken.groups()), told["nodes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dssync", type=pathlib.Path)
    parser.add_argument("--hosts", default="8,16,32")
    parser.add_argument("--networks", type=int, default=4)
    parser.add_argument("--nics", default="20,40")
    options = parser.parse_args()
    nics = [int(nic) for nic in options.nics.split(",")]
    print("| hosts | racks of | NIC, uplinks in Mbit/s | found | matchings | seconds | unexplained |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for hosts in map(int, options.hosts.split(",")):
        flat = Network(nics[0], [0] * hosts, [])
        for network in [*(random_network(seed, [hosts], nics) for seed in range(100, 100 + options.networks)), flat]:
            seconds, matchings, unexplained, nodes = discover(options.dssync.resolve(), network)
            sizes = ", ".join(str(len(rack)) for rack in sorted(network.racks(), key=min))
            uplinks = ", ".join(map(str, network.uplinks)) or "none"
            found = "all" if network.is_as(nodes) else "**not**"
            print(f"| {hosts} | {sizes} | {network.nic}; {uplinks} | {found} | {matchings:.0f} | {seconds} | {unexplained:.0f} % |",
                  flush=True)


if __name__ == "__main__":
    main()
