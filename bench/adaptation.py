#!/usr/bin/env python3
"""What ds-sync makes of a network that changes while it trains: the figures of docs/adaptation.md.

    bench/adaptation.py build/release/cli/dssync cut|nic|slow-worker|wave|accuracy|auto|all [--report FILE] [--seeds 1,2,3]

Two racks of four workers on an emulated network, NICs of 200 Mbit/s, a model of 8 MB (mlp), each worker with one thread.

cut          the core falls from 200 to 25 Mbit/s and comes back, with the adapting plan, the same plan without adapting, bsp-ring,
             and fresh runs that are planned for what the network has become; --report writes their logs as one page
nic          one NIC is slowed down to 40 Mbit/s; real flows contend for it: 160 Mbit/s of UDP, which leave 40, and four connections of TCP
slow-worker  one worker computes twice as long
accuracy     cnn on Fashion-MNIST, 4 epochs, while the core (50 Mbit/s) is cut to 5 and comes back, twice; beside runs without any change
auto         the same training with limits on S from 0.5 to 4, and with one that is steered: accuracy, and what the network has to carry
             (on loopback: what is sent does not depend on how fast it is)
wave         the core has 25 Mbit/s for 5 s, 200 for 5 s, and so on for two minutes; beside both static plans

Needs root or user namespaces.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from testbed_links import network

FLAGS = ["--data", "synthetic", "--train-examples", 100_000, "--test-examples", 64, "--model", "mlp", "--hidden", 2350, "--batch", 4,
         "--epochs", 1000, "--evaluate-every", 0, "--learning-rate", 0.001]
CORE = ["rack-a", "rack-b"]
FULL, CUT = 200, 25


def racks(core, nic=200):
    """Two racks of four, with NICs and behind uplinks of so many Mbit/s."""
    return (f"defaults: {{nic: {nic}Mbps}}\nswitches:\n  - {{name: core}}\n"
            f"  - {{name: rack-a, parent: core, uplink: {core}Mbps}}\n  - {{name: rack-b, parent: core, uplink: {core}Mbps}}\n"
            'hosts:\n  - {name: "a[0-3]", switch: rack-a}\n  - {name: "b[0-3]", switch: rack-b}\n')


def cpu_time():
    """Of all CPUs since the machine started: what its host gave to others meanwhile, and all, in ticks."""
    fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return fields[7], sum(fields)


class Run:
    """Eight workers that train on an emulated network, planned for one that may be another."""

    def __init__(self, options, name, flags, emulated=FULL, planned=None, nic=200, compute=("50ms",) * 8, work=FLAGS):
        self.name = name
        self.options = options
        self.log = options.folder / f"{name}.jsonl"
        self.log.unlink(missing_ok=True)  # of a run before
        self.flags = flags
        self.emulated = emulated
        self.planned = planned or emulated
        self.nic = nic
        self.compute = compute
        self.work = work

    def __enter__(self):
        print(f"running: {self.name}", file=sys.stderr, flush=True)
        self.stack = contextlib.ExitStack()
        self.net = self.stack.enter_context(network(self.options.tool, racks(self.emulated, self.nic)))
        plan = self.options.folder / f"core-{self.planned}.yaml"
        plan.write_text(racks(self.planned, self.nic))
        hosts = self.net.status()["hosts"]
        self.workers = []
        for rank, host in enumerate(hosts):
            variables = {"RANK": rank, "WORLD_SIZE": len(hosts), "MASTER_ADDR": hosts[0]["address"], "MASTER_PORT": 29500}
            command = ["env", *(f"{key}={value}" for key, value in variables.items()), self.options.tool, "train",
                       "--topology", plan, "--compute", self.compute[rank], *self.work, *self.flags]
            if rank == 0:
                command += ["--log", self.log]
            self.workers.append(self.net.start(host["name"], *command))
        while not self.iterations():
            if self.workers[0].poll() is not None:
                sys.exit(f"{self.name}: {self.workers[0].stderr.read()}")
            time.sleep(0.1)
        self.cpu_time = cpu_time()
        return self

    def __exit__(self, *failure):
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.communicate()
        self.stack.close()

    def contend(self, links, megabits):
        for link in links:
            subprocess.run([self.options.tool, "testbed", "contend", link, f"{megabits}Mbps"], check=True, capture_output=True)
        return self.done()

    def events(self, kind):
        text = self.log.read_text() if self.log.exists() else ""
        events = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [event for event in events if event["event"] == kind]

    def iterations(self):
        return self.events("iteration")

    def done(self):
        found = self.iterations()
        return found[-1]["iteration"] if found else 0

    def wait_for(self, iterations=0, seconds=0):
        """Until so many more were done, and so many seconds have gone by."""
        target, start = self.done() + iterations, time.monotonic()
        while self.done() < target or time.monotonic() < start + seconds:
            if self.workers[0].poll() is not None:
                sys.exit(f"{self.name}: {self.workers[0].stderr.read()}")
            time.sleep(0.1)

    def seconds(self, first, last):
        """Median time of the iterations from one to another, without the first of them."""
        return statistics.median(event["iteration_seconds"] for event in self.iterations() if first < event["iteration"] <= last)

    def stolen(self):
        """The part of the CPU time since the first iteration that the machine's host gave to others: the run was slower for it."""
        stolen, total = (now - before for now, before in zip(cpu_time(), self.cpu_time))
        return f"{100 * stolen / max(1, total):.0f} %"

    def mean(self, first, last):
        return statistics.mean(event["iteration_seconds"] for event in self.iterations() if first < event["iteration"] <= last)


def shown(seconds):
    return f"{1000 * seconds:.0f} ms"


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def fresh(options, core):
    """The time of an iteration where the plan knows the network."""
    with Run(options, f"fresh-{core}", ["--no-adapt"], emulated=core) as run:
        run.wait_for(iterations=30)
        return run.seconds(10, run.done())


def cut(options):
    """The core falls to an eighth, and comes back. Times in parts of those of fresh runs just before."""
    row("", "before", f"core {CUT} Mbit/s", "after", "in force after", "and back after", "CPU stolen")
    row(*["---"] * 7)
    logs = {}
    for name, flags in [("adapting", [])] * options.repeats + [("keeping its plan", ["--no-adapt"]), ("bsp-ring", ["--method", "bsp-ring"])]:
        if name == "adapting":
            expected = {core: fresh(options, core) for core in (FULL, CUT)}
            row("fresh runs", shown(expected[FULL]), shown(expected[CUT]), "", "", "", "")
        with Run(options, name.replace(" ", "-"), flags) as run:
            run.wait_for(iterations=30)
            down = run.contend(CORE, CUT)
            run.wait_for(iterations=35)
            up = run.contend(CORE, FULL)
            run.wait_for(iterations=70)
            end = run.done()
            changes = [event["iteration"] for event in run.events("replanned")]
            after_down = [change - down for change in changes if down < change <= up]
            after_up = [change - up for change in changes if up < change]
            cells = [f"{shown(seconds)} ({seconds / expected[core]:.2f})"
                     for core, seconds in ((FULL, run.seconds(10, down)), (CUT, run.seconds(down + 15, up)), (FULL, run.seconds(up + 40, end)))]
            row(name, *cells, ", ".join(map(str, after_down)), ", ".join(map(str, after_up)), run.stolen())
            for event in run.events("replanned"):
                print(f"  after iteration {event['iteration']}: {event['reason']}", file=sys.stderr)
            logs[name] = run.log
    if options.report:
        subprocess.run([options.tool, "report", *logs.values(), "--output", options.report], check=True)


# Takes all that comes over so many connections.
TAKE = """
import socket, sys, threading
server = socket.create_server(("", 0))
print(server.getsockname()[1], flush=True)
def take(peer):
    while peer.recv(1 << 20):
        pass
for _ in range(int(sys.argv[1])):
    threading.Thread(target=take, args=server.accept()[:1]).start()
"""
# Sends as much as it can over each of them.
GIVE = """
import socket, sys, threading
def give():
    peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    while True:
        peer.sendall(bytes(1 << 16))
for _ in range(int(sys.argv[3])):
    threading.Thread(target=give).start()
"""


@contextlib.contextmanager
def connections(net, sender, receiver, count):
    """TCP of another job, as fast as it goes."""
    taker = net.start(receiver, sys.executable, "-c", TAKE, count)
    giver = net.start(sender, sys.executable, "-c", GIVE, net.address(receiver), taker.stdout.readline().strip(), count)
    try:
        yield
    finally:
        for process in (giver, taker):
            process.terminate()
            process.communicate()


@contextlib.contextmanager
def contended(options, *flags):
    command = [options.tool, "testbed", "contend", "a1 out", "40Mbps", *flags]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def nic(options, seconds=25):
    """Less of one NIC: by its shaping, and by flows of another job. Links that no flow crosses must not be blamed."""
    kinds = {"shaped": lambda run: contended(options),
             "contended by UDP": lambda run: contended(options, "--traffic"),
             "contended by TCP": lambda run: connections(run.net, "a1", "a0", 4)}
    for name, contention in kinds.items():
        for turn in range(1, options.repeats + 1):
            with Run(options, f"nic-{name.replace(' ', '-')}-{turn}", []) as run:
                run.wait_for(iterations=20)
                start = run.done()
                with contention(run):
                    run.wait_for(seconds=seconds)
                    end = run.done()
                    changes = run.events("replanned")
                print(f"\n`a1 out` {name}, from iteration {start} on: {shown(run.seconds(5, start))} per iteration before, "
                      f"{shown(run.seconds(max(start, end - 10), end))} in the end")
                for event in changes:
                    print(f"  after iteration {event['iteration']}: {event['reason']}", flush=True)


def slow_worker(options):
    with Run(options, "slow-worker", [], compute=["100ms"] * 3 + ["200ms"] + ["100ms"] * 4) as run:
        run.wait_for(iterations=100)
        print(f"\na worker that computes for 200 instead of 100 ms: {len(run.events('replanned'))} new plans in {run.done()} iterations")


REAL_WORK = ["--data", "fashion-mnist", "--model", "cnn", "--epochs", 4, "--evaluate-every", 0]


def spread(values):
    """Mean and standard error."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{statistics.mean(values):.2f} +- {error:.2f}"


def accuracy(options, core=50, cut_core=5):
    """At the end of a training in which the core was cut and came back twice, and of one in which nothing happened."""
    row("seed", "plan changes, %", "no change, %", "new plans from iterations")
    row(*["---"] * 4)
    changed, kept = [], []
    for seed in options.seeds:
        with Run(options, f"accuracy-{seed}", ["--seed", seed], core, compute=["0ms"] * 8, work=REAL_WORK) as run:
            for rate in (cut_core, core, cut_core, core):
                run.wait_for(iterations=150)
                run.contend(CORE, rate)
            run.workers[0].wait()
            changes = [event["iteration"] for event in run.events("replanned")]
            changed.append(100 * run.events("finished")[0]["test_accuracy"])
        with Run(options, f"unchanged-{seed}", ["--seed", seed, "--no-adapt"], core, compute=["0ms"] * 8, work=REAL_WORK) as run:
            run.workers[0].wait()
            kept.append(100 * run.events("finished")[0]["test_accuracy"])
        row(seed, f"{changed[-1]:.2f}", f"{kept[-1]:.2f}", ", ".join(map(str, changes)))
    row("mean", spread(changed), spread(kept), f"difference {spread([a - b for a, b in zip(changed, kept)])}")


def auto(options):
    """Whether a limit on S that is steered pays."""
    plan = options.folder / "racks.yaml"
    plan.write_text(racks(50))
    row("limit on S", "accuracy, %", "by seed", "kB sent per worker and iteration", "new plans")
    row(*["---"] * 5)
    for limit in ("0.5", "1", "2", "4", "auto:4"):
        flags = [] if limit.startswith("auto") else ["--no-adapt"]
        finals, sent, changes = [], [], []
        for seed in options.seeds:
            print(f"running: limit {limit}, seed {seed}", file=sys.stderr, flush=True)
            log = options.folder / f"auto-{limit.replace(':', '-')}-{seed}.jsonl"
            subprocess.run([options.tool, "train", "--topology", plan, *map(str, REAL_WORK), "--seed", str(seed), "--disagreement", limit,
                            *flags, "--log", log], check=True, capture_output=True)
            events = [json.loads(line) for line in log.read_text().splitlines()]
            finals.append(100 * events[-1]["test_accuracy"])
            sent.append(statistics.mean(event["bytes_sent"] for event in events if event["event"] == "iteration") / 1000)
            changes.append(events[-1]["plan_changes"])
        row(limit, spread(finals), " ".join(f"{final:.2f}" for final in finals), f"{statistics.mean(sent):.0f}", " ".join(map(str, changes)))


def wave(options, period=5, length=120):
    """Mean iteration while the core comes and goes, with the adapting plan and with either static one."""
    print()
    row(f"core {CUT} / {FULL} Mbit/s, {period} s each, for {length} s", "mean iteration", "iterations", "new plans", "CPU stolen")
    row(*["---"] * 5)
    for _ in range(options.repeats):
        means = []
        for name, flags, planned in (("adapting", [], FULL), (f"planned for {FULL}", ["--no-adapt"], FULL),
                                     (f"planned for {CUT}", ["--no-adapt"], CUT)):
            with Run(options, f"wave-{name.replace(' ', '-')}", flags, planned=planned) as run:
                run.wait_for(iterations=10)
                first = run.done()
                start = time.monotonic()
                for turn in range(length // period):
                    run.contend(CORE, (CUT, FULL)[turn % 2])
                    time.sleep(max(0, start + (turn + 1) * period - time.monotonic()))
                last = run.done()
                means.append(run.mean(first, last))
                row(name, shown(means[-1]), last - first, len(run.events("replanned")), run.stolen())
        row("adapting / the better static plan", f"{means[0] / min(means[1:]):.2f}", "", "", "")


def main():
    experiments = {"cut": cut, "nic": nic, "slow-worker": slow_worker, "wave": wave, "accuracy": accuracy, "auto": auto}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("experiment", choices=[*experiments, "all"])
    parser.add_argument("--report", type=pathlib.Path, help="where cut writes its page")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the logs (default: they are removed)")
    parser.add_argument("--repeats", type=int, default=3, help="of nic, cut and wave (default: 3)")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[1, 2, 3])
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"argument --repeats: {options.repeats}: at least 1 is needed")
    options.tool = options.tool.resolve()
    with tempfile.TemporaryDirectory() as state, tempfile.TemporaryDirectory() as folder:
        os.environ["DSSYNC_STATE"] = state  # away from the testbeds of others
        options.folder = options.keep.resolve() if options.keep else pathlib.Path(folder)
        options.folder.mkdir(exist_ok=True)
        for name, experiment in experiments.items():
            if options.experiment in (name, "all"):
                experiment(options)


if __name__ == "__main__":
    main()
