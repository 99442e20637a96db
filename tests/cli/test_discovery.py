"""`--topology auto`: workers that nobody has told their network find it out, on emulated networks and on this machine's."""

import os
import random
import re
import signal

import pytest
from train_helper import ENDLESS, SMALL, events, finish, needs_torch, ranks_by_hand, refusal, running, train, worker_pid

pytestmark = needs_torch

SHORT = [*SMALL, "--iterations", 1]
NETWORKS = 8


class Network:
    """Hosts in racks, in no particular order; no racks: all on one switch."""

    def __init__(self, nic, rack_of, uplinks):
        self.nic, self.rack_of, self.uplinks = nic, rack_of, uplinks  # in Mbit/s

    def file(self):
        switches = [f"  - {{name: s{rack}, parent: top, uplink: {rate}Mbps}}\n" for rack, rate in enumerate(self.uplinks)]
        switch_of = (f"s{rack}" if self.uplinks else "top" for rack in self.rack_of)
        hosts = [f"  - {{name: h{rank}, switch: {switch}, nic: {self.nic}Mbps}}\n" for rank, switch in enumerate(switch_of)]
        return "".join(["switches:\n", "  - {name: top}\n", *switches, "hosts:\n", *hosts])

    def racks(self):
        return {frozenset(rank for rank, own in enumerate(self.rack_of) if own == rack) for rack in self.rack_of}


def random_network(seed):
    """Two to four racks of two hosts or more, eight to twelve hosts, 2:1 to 8:1."""
    numbers = random.Random(seed)
    racks = numbers.randint(2, 4)
    hosts = numbers.randint(8, 12)
    rack_of = [*range(racks)] * 2 + [numbers.randrange(racks) for _ in range(hosts - 2 * racks)]
    numbers.shuffle(rack_of)
    nic = numbers.choice([40, 60, 80, 100])
    oversubscription = numbers.uniform(2, 8)
    return Network(nic, rack_of, [round(nic * rack_of.count(rack) / oversubscription, 1) for rack in range(racks)])


def discovered(network, folder):
    """What workers on this network find: the nodes of the topology, as their log has them."""
    file, saved, log = (folder / name for name in ("network.yaml", "found.yaml", "run.jsonl"))
    file.write_text(network.file())
    _, stderr = train("--topology", "auto", "--emulate", file, "--save-topology", saved, *SHORT, "--log", log,
                      environment={"DSSYNC_STATE": str(folder / "state")})
    seconds = float(re.search(r"the workers found this network in ([\d.]+) s:\n", stderr)[1])
    assert saved.read_text() in stderr
    print(f"{seconds} s\n{network.file()}{saved.read_text()}")
    assert seconds < 20
    told = next(event for event in events(log) if event["event"] == "network")
    assert told["source"] == "auto" and told["emulated"]
    return told["nodes"]


def racks_of(nodes):
    """The ranks below each switch that has hosts."""
    racks = {}
    for node in nodes:
        if node["kind"] == "host":
            racks.setdefault(node["parent"], set()).update(node["ranks"])
    return racks


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_racks_are_found(needs_namespaces, tmp_path, seed):
    network = random_network(seed)
    nodes = discovered(network, tmp_path)
    racks = racks_of(nodes)
    assert {frozenset(rack) for rack in racks.values()} == network.racks()
    for node in nodes[1:]:
        expected = network.nic if node["kind"] == "host" else network.uplinks[network.rack_of[min(racks[node["name"]])]]
        assert node["bytes_per_second"] * 8e-6 == pytest.approx(expected, rel=0.25), node


def test_a_flat_network_is_flat(needs_namespaces, tmp_path):
    nodes = discovered(Network(80, [0] * 8, []), tmp_path)
    assert [node["name"] for node in nodes] == ["core", *(f"worker{rank}" for rank in range(8))]
    assert all(node["bytes_per_second"] * 8e-6 == pytest.approx(80, rel=0.2) for node in nodes[1:])


def test_workers_on_one_machine_are_on_a_flat_network(tmp_path):
    saved = tmp_path / "found.yaml"
    _, stderr = train("--workers", 4, "--topology", "auto", "--save-topology", saved, *SHORT)
    assert "4 hosts, no uplink that limits them" in saved.read_text()
    assert saved.read_text() in stderr
    train("--topology", saved, *SHORT)


def test_workers_of_another_launcher_need_no_number(tmp_path):
    saved = tmp_path / "found.yaml"
    results = ranks_by_hand(3, lambda rank: ["--topology", "auto", "--save-topology", saved, *SHORT])
    assert [status for status, _, _ in results] == [0, 0, 0], results
    assert ["found this network" in stderr for _, _, stderr in results] == [True, False, False]
    assert "worker[0-2]" in saved.read_text()


def test_a_worker_that_is_lost_while_measuring_is_named():
    with running("--workers", 8, "--topology", "auto", *ENDLESS) as process:
        first = process.stderr.readline()
        assert "discovering the network: matching " in first and " of at most 60" in first
        os.kill(worker_pid(process, 5), signal.SIGKILL)
        status, stdout, stderr = finish(process, 15)
    assert status == 1 and stdout == ""
    assert stderr.splitlines()[-1] == "dssync train: rank 5 was killed by signal 9 (Killed)"
    for rank in (0, 1, 2, 3, 4, 6, 7):
        assert f"dssync train: rank {rank}: discovering the network: rank 5 was killed by signal 9 (Killed)" in stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--topology", "auto"], ["--workers or --topology FILE is required"]),
        (["--topology", "auto", "--emulate"], ["--emulate needs a file with --topology auto", "--emulate FILE"]),
        (["--topology", "auto", "--workers", 3, "--emulate", "examples/topologies/two-racks.yaml"],
         ["two-racks.yaml: has 8 workers, but --workers is 3"]),
        (["--topology", "examples/topologies/two-racks.yaml", "--emulate", "other.yaml"],
         ["--emulate other.yaml needs --topology auto", "--topology other.yaml --emulate"]),
        (["--workers", 4, "--save-topology", "found.yaml"], ["--save-topology needs --topology auto"]),
        (["--workers", 4, "--topology", "auto", "--save-topology", "/nowhere/found.yaml"], ["--save-topology", "/nowhere is not a folder"]),
        (["--workers", 4, "--topology", "auto", "--nic", "1Gbps"], ["--nic", "--topology auto measures it"]),
    ],
)
def test_what_is_wrong_is_known_before_anything_is_measured(arguments, words):
    message = refusal(*arguments)
    for word in words:
        assert word in message
