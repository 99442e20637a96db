"""Small training logs, as dssync train writes them, made up for the tests of the report."""

import json
import math

OPTIONS = {"epochs": 4, "batch_size": 32, "optimizer": "sgd", "learning_rate": 0.1, "log": ""}


def network(bytes_per_iteration):
    """Two racks of four hosts; the plan is a cycle of two rounds."""
    nodes = [{"name": "core", "kind": "switch", "parent": None, "bytes_per_second": None, "latency_seconds": 0, "ranks": []}]
    links = []

    def link(name, share, capacity):
        carried = share * bytes_per_iteration
        links.append({"name": name, "bytes_per_iteration": carried, "seconds": carried / capacity,
                      "capacity_bytes_per_second": capacity})

    for rack in "ab":
        nodes.append({"name": f"rack-{rack}", "kind": "switch", "parent": "core", "bytes_per_second": 6.25e6,
                      "latency_seconds": 0, "ranks": []})
        for way in ("up", "down"):
            link(f"rack-{rack} {way}", 0.5, 6.25e6)
        for host in range(4):
            rank = host + (4 if rack == "b" else 0)
            nodes.append({"name": f"{rack}{host}", "kind": "host", "parent": f"rack-{rack}", "bytes_per_second": 2.5e7,
                          "latency_seconds": 0, "ranks": [rank]})
            for way in ("out", "in"):
                link(f"{rack}{host} {way}", 1, 2.5e7)
    seconds = max(entry["seconds"] for entry in links)
    rounds = [{"label": "all", "groups": [list(range(8))]},
              {"label": "whole rack-a, rack-b", "groups": [[0, 1, 2, 3], [4, 5, 6, 7]]}]
    return {"event": "network", "source": "two-racks.yaml", "emulated": True, "nodes": nodes,
            "plan": {"shards": 2, "rounds": rounds, "mixing": {"cycle_norm": 0.0, "steady_disagreement": 0.4, "exact": True}},
            "cost": {"seconds_per_iteration": seconds, "bottleneck": "rack-a up", "links": links}}


def log(method="ds-sync", seed=1, iterations=80, pace=0.1, best=0.9, end="finished", network_bytes=0, options=None, extra=()):
    """The lines of a log, as objects. `pace`: seconds per iteration; `best`: the accuracy that training comes near to."""
    lines = [{"event": "started", "version": "0.1.0", "method": method, "model": "mlp", "data": "synthetic", "workers": 8,
              "seed": seed, "parameters": 1000, "model_bytes": 4000, "total_iterations": iterations, "first_iteration": 0,
              "options": {"method": method, "seed": seed, **OPTIONS, **(options or {})},
              "command": ["dssync", "train", "--method", method, "--seed", str(seed)]}]
    if network_bytes:
        lines.append(network(network_bytes))
    for i in range(1, iterations + 1):
        took = pace * (1 + 0.1 * math.sin(i))
        lines.append({"event": "iteration", "epoch": 1, "iteration": i, "loss": 2 * math.exp(-i / 30), "learning_rate": 0.1,
                      "seconds": i * pace, "iteration_seconds": took, "compute_seconds": 0.3 * took,
                      "sync_seconds": 0.7 * took, "wait_seconds": 0.6 * took, "images_per_second": 100, "bytes_sent": 3000, "disagreement": 0.1,
                      "relative_disagreement": 0 if method.startswith("bsp") else 0.1 * math.exp(-i / 12)})
        if i % 10 == 0:
            lines.append({"event": "evaluated", "epoch": 1, "iteration": i, "seconds": i * pace, "training_seconds": i * pace,
                          "test_accuracy": best - 0.6 * math.exp(-i / 20), "test_loss": 0.5, "consolidated_disagreement": 0.1})
    lines.extend(extra)
    if network_bytes:
        lines.append({"event": "traffic", "iteration": iterations, "iterations": iterations, "seconds": iterations * pace,
                      "links": [{"name": link["name"], "bytes": int(1.05 * iterations * link["bytes_per_iteration"])}
                                for link in lines[1]["cost"]["links"]]})
    if end == "finished":
        lines.append({"event": "finished", "method": method, "iterations": iterations, "total_iterations": iterations,
                      "epochs": 1, "seconds": iterations * pace, "training_seconds": iterations * pace,
                      "test_accuracy": best, "test_loss": 0.5})
    elif end:
        lines.append({"event": end, "cause": "rank 3 was killed by signal 9 (Killed)", "iterations": iterations})
    return lines


def write(file, lines):
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file
