"""`--topology auto`: workers that nobody has told their network find it out, on emulated networks and on this machine's."""

import os
import re
import signal

import pytest
from random_networks import Network, racks_of, random_network
from train_helper import ENDLESS, SMALL, events, finish, needs_torch, ranks_by_hand, refusal, running, train, worker_pid

pytestmark = needs_torch

SHORT = [*SMALL, "--iterations", 1]
NETWORKS = 8
FLAT = Network(80, [0] * 8, [])


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


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_racks_are_found(needs_namespaces, tmp_path, seed):
    network = random_network(seed)
    nodes = discovered(network, tmp_path)
    racks = racks_of(nodes)
    assert network.is_as(nodes)
    for node in nodes[1:]:
        expected = network.nic if node["kind"] == "host" else network.seen_uplink(network.rack_of[min(racks[node["name"]])])
        assert node["bytes_per_second"] * 8e-6 == pytest.approx(expected, rel=0.25), node


def test_a_flat_network_is_flat(needs_namespaces, tmp_path):
    nodes = discovered(FLAT, tmp_path)
    assert [node["name"] for node in nodes] == ["core", *(f"worker{rank}" for rank in range(8))]
    assert all(node["bytes_per_second"] * 8e-6 == pytest.approx(80, rel=0.2) for node in nodes[1:])


def test_workers_on_one_machine_are_on_a_flat_network(tmp_path):
    saved = tmp_path / "found.yaml"
    _, stderr = train("--workers", 4, "--topology", "auto", "--save-topology", saved, *SHORT)
    assert saved.read_text() in stderr
    assert saved.read_text().startswith("# All workers are on one machine.\n# 4 hosts, no uplink that limits them; 3 sets of transfers")
    assert '  - {name: "worker[0-3]", switch: "core", nic: ' in saved.read_text()
    train("--topology", saved, *SHORT)


def test_workers_of_another_launcher_need_no_number(tmp_path):
    saved = tmp_path / "found.yaml"
    results = ranks_by_hand(3, lambda rank: ["--topology", "auto", "--save-topology", saved, *SHORT])
    assert [status for status, _, _ in results] == [0, 0, 0], results
    assert ["found this network" in stderr for _, _, stderr in results] == [True, False, False]
    assert "worker[0-2]" in saved.read_text()


def test_a_worker_that_is_lost_while_measuring_is_named(needs_namespaces, tmp_path):
    file = tmp_path / "network.yaml"
    file.write_text(FLAT.file())
    state = {"DSSYNC_STATE": str(tmp_path / "state")}
    with running("--topology", "auto", "--emulate", file, *ENDLESS, environment=state) as process:
        assert "emulating the network" in process.stderr.readline()
        first = process.stderr.readline()
        assert "discovering the network: matching " in first and " of at most 60" in first
        os.kill(worker_pid(process, 5), signal.SIGKILL)
        status, stdout, stderr = finish(process, 15)
    assert status == 1 and stdout == ""
    assert stderr.splitlines()[-1] == "dssync train: rank 5 was killed by signal 9 (Killed)"
    for rank in (0, 1, 2, 3, 4, 6, 7):
        assert re.search(rf"dssync train: rank {rank}: .*: rank 5 was killed by signal 9 \(Killed\)\n", stderr), rank


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
