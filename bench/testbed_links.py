#!/usr/bin/env python3
"""How well TCP uses the links of a testbed: goodput alone, in parallel, both ways and through a shared uplink; how long messages
take; how long a network takes to build. Prints the tables of docs/testbed.md.

    bench/testbed_links.py build/release/cli/dssync [--seconds 5] [--rates 10,50,200,1000]

Needs iperf3, and root or user namespaces."""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

PAYLOAD = 8960 / 9014  # of a full frame
PORTS = itertools.count(5001)

PAIR = "hosts:\n  - {{name: \"h[0-1]\", nic: {rate}Mbps}}\n"
RACKS = """\
defaults: {{nic: {nic}Mbps}}
switches:
  - {{name: core}}
  - {{name: "rack-a", parent: core, uplink: {uplink}Mbps}}
  - {{name: "rack-b", parent: core, uplink: {uplink}Mbps}}
hosts:
  - {{name: "a[0-{last}]", switch: rack-a}}
  - {{name: "b[0-{last}]", switch: rack-b}}
"""
# Answers every message, a length followed by so many bytes, with one byte.
ANSWER = """
import socket
server = socket.create_server(("", 0))
print(server.getsockname()[1], flush=True)
peer, _ = server.accept()
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
with peer.makefile("rb") as stream:
    while head := stream.read(8):
        stream.read(int.from_bytes(head, "big"))
        peer.sendall(b"x")
"""
# Sends messages of some size with pauses and prints the seconds until each answer.
ASK = """
import socket, sys, time
host, port, size, count = sys.argv[1], *map(int, sys.argv[2:])
peer = socket.create_connection((host, port))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(count):
    time.sleep(0.05)
    start = time.perf_counter()
    peer.sendall(size.to_bytes(8, "big") + bytes(size))
    peer.recv(1)
    print(time.perf_counter() - start, flush=True)
"""


class Network:
    """A running testbed."""

    def __init__(self, tool, text):
        self.tool = tool
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            start = time.perf_counter()
            result = subprocess.run([tool, "testbed", "up", "--topology", file.name], capture_output=True, text=True)
            self.seconds_to_build = time.perf_counter() - start
        if result.returncode != 0:
            sys.exit(result.stderr.strip())
        self.name = result.stdout.split(":")[0]

    def status(self):
        result = subprocess.run([self.tool, "testbed", "status", self.name, "--format", "json"], capture_output=True, check=True)
        return json.loads(result.stdout)["testbeds"][0]

    def address(self, host):
        return next(entry["address"] for entry in self.status()["hosts"] if entry["name"] == host)

    def start(self, host, *command):
        command = [self.tool, "testbed", "exec", "--name", self.name, host, "--", *map(str, command)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, host, *command):
        process = self.start(host, *command)
        stdout, stderr = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"{host}: {' '.join(map(str, command))}: {stdout}{stderr}")
        return stdout

    def timeouts(self):
        """Retransmissions of TCP that had to wait for a timer, in all hosts so far."""
        total = 0
        for host in self.status()["hosts"]:
            lines = self.run(host["name"], "cat", "/proc/net/netstat").splitlines()
            names, values = (line.split() for line in lines[:2])
            total += int(values[names.index("TCPTimeouts")])
        return total

    def drops(self):
        return sum(link["dropped_frames"] for link in self.status()["links"])

    def down(self):
        subprocess.run([self.tool, "testbed", "down", self.name], capture_output=True, check=True)


@contextlib.contextmanager
def network(tool, text):
    built = Network(tool, text)
    try:
        yield built
    finally:
        built.down()


def iperf(net, pairs, *flags):
    """Starts a server and a client for each (client, server), the clients as much at once as can be; returns those, whose output
    is JSON."""
    port = next(PORTS)  # a server may still be ending
    addresses = {server: net.address(server) for _, server in pairs}
    for _, server in pairs:
        listener = net.start(server, "iperf3", "--server", "--one-off", "--port", port, "--forceflush")
        while "listening" not in listener.stdout.readline():
            if listener.poll() is not None:
                sys.exit(f"iperf3: {listener.stderr.read()}")
    return [net.start(client, "iperf3", "--json", "--client", addresses[server], "--port", port, "--omit", 1, *flags)
            for client, server in pairs]


def megabits(clients):
    """Goodput of all of them as (forward, reverse) in Mbit/s."""
    ends = [json.loads(client.communicate()[0])["end"] for client in clients]
    forward = sum(end["sum_received"]["bits_per_second"] for end in ends)
    reverse = sum(end.get("sum_received_bidir_reverse", {"bits_per_second": 0})["bits_per_second"] for end in ends)
    return forward / 1e6, reverse / 1e6


def carried(net, pairs, seconds, links, *flags):
    """What TCP carries over some links, in Mbit/s without headers, while many flows share them. Those of iperf3 start one after
    the other, so that only the links know what all of them do at the same time."""
    load = iperf(net, pairs, "--time", seconds + 4, *flags)
    time.sleep(2)
    samples = []
    for _ in range(2):
        bytes_so_far = {link["name"]: link["bytes"] for link in net.status()["links"]}  # the last thing that it looks at
        samples.append((time.perf_counter(), bytes_so_far))
        time.sleep(seconds)
    megabits(load)
    (start, before), (end, after) = samples
    return [(after[name] - before[name]) / (end - start) * 8 / 1e6 * PAYLOAD for name in links]


def percent(rate, capacity):
    return f"{100 * rate / capacity:.1f} %"


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def table(*names):
    print()
    row(*names)
    row(*["---"] * len(names))


def measure_pairs(tool, rates, seconds):
    table("link", "1 flow", "8 flows", "8 + 8 flows, both ways", "lost frames", "timeouts")
    for rate in rates:
        with network(tool, PAIR.format(rate=rate)) as net:
            pair = [("h0", "h1")]
            single, _ = megabits(iperf(net, pair, "--time", seconds))
            many, _ = megabits(iperf(net, pair, "--time", seconds, "--parallel", 8))
            ways = carried(net, pair, seconds, ["h0 out", "h1 out"], "--parallel", 8, "--bidir")
            both = " / ".join(percent(way, rate) for way in ways)
            row(f"{rate} Mbit/s", percent(single, rate), percent(many, rate), both, net.drops(), net.timeouts())


def measure_uplink(tool, rates, seconds):
    """Four hosts a rack, four flows between each two hosts, through uplinks a quarter as fast as the NICs."""
    table("uplink", "16 flows", "16 + 16 flows, both ways", "1 flow against 16", "lost frames", "timeouts")
    for rate in rates:
        with network(tool, RACKS.format(nic=4 * rate, uplink=rate, last=3)) as net:
            pairs = [(f"a{i}", f"b{i}") for i in range(4)]
            [one_way] = carried(net, pairs, seconds, ["rack-a up"], "--parallel", 4)
            ways = carried(net, pairs, seconds, ["rack-a up", "rack-b up"], "--parallel", 4, "--bidir")
            load = iperf(net, pairs, "--time", seconds + 4, "--parallel", 4)
            alone, _ = megabits(iperf(net, [("b0", "a0")], "--time", seconds))
            megabits(load)
            both = " / ".join(percent(way, rate) for way in ways)
            row(f"{rate} Mbit/s", percent(one_way, rate), both, percent(alone, rate), net.drops(), net.timeouts())


def median_milliseconds(net, client, server, size, count=21):
    answerer = net.start(server, sys.executable, "-c", ANSWER)
    port = answerer.stdout.readline().strip()
    times = sorted(map(float, net.run(client, sys.executable, "-c", ASK, net.address(server), port, size, count).split()))
    answerer.communicate()
    return 1e3 * times[len(times) // 2]


def measure_messages(tool, rates, seconds):
    """Between racks: over two NICs and two uplinks."""
    table("uplink", "64 B", "100 kB", "at the link's rate", "1 MB", "at the link's rate", "64 B beside 4 flows")
    for rate in rates:
        with network(tool, RACKS.format(nic=4 * rate, uplink=rate, last=1)) as net:
            cells = [f"{median_milliseconds(net, 'a0', 'b0', 64):.2f} ms"]
            for size in (100_000, 1_000_000):
                cells.append(f"{median_milliseconds(net, 'a0', 'b0', size):.1f} ms")
                cells.append(f"{size * 8 / rate / 1e3:.1f} ms")
            load = iperf(net, [("a1", "b1")], "--time", max(seconds, 3), "--parallel", 4)
            time.sleep(0.5)
            cells.append(f"{median_milliseconds(net, 'a0', 'b0', 64):.1f} ms")
            megabits(load)
            row(f"{rate} Mbit/s", *cells)


def measure_building(tool):
    table("hosts", "built in")
    for hosts in (8, 64, 256):
        with network(tool, RACKS.format(nic=100, uplink=100, last=hosts // 2 - 1)) as net:
            row(hosts, f"{net.seconds_to_build:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=5, help="of each measurement")
    parser.add_argument("--rates", default="10,50,200,1000", help="of links, in Mbit/s")
    parser.add_argument("--only", choices=["pairs", "uplink", "messages", "building"])
    options = parser.parse_args()
    tool = options.tool.resolve()
    rates = [int(rate) for rate in options.rates.split(",")]
    parts = {"pairs": lambda: measure_pairs(tool, rates, options.seconds),
             "uplink": lambda: measure_uplink(tool, [rate for rate in rates if rate <= 250], options.seconds),
             "messages": lambda: measure_messages(tool, [rate for rate in rates if rate <= 250], options.seconds),
             "building": lambda: measure_building(tool)}
    with tempfile.TemporaryDirectory() as state:
        os.environ["DSSYNC_STATE"] = state  # away from the testbeds of others
        for name, measure in parts.items():
            if options.only in (None, name):
                measure()


if __name__ == "__main__":
    main()
