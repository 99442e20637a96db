"""`dssync bench` and `--emulate`: workers on the network of a topology file, and that nothing is left of it."""

import json
import os
import re
import signal
import subprocess

import pytest
from conftest import ENVIRONMENT, ROOT, TOOL
from train_helper import ENDLESS, SMALL, events, finish, needs_torch, running, two_racks, wait_for_iterations, worker_pid

pytestmark = needs_torch

PATIENCE = 120


@pytest.fixture
def network(tmp_path):
    file = tmp_path / "racks.yaml"
    file.write_text(two_racks("100Mbps", "25Mbps"))
    return file


@pytest.fixture
def state(needs_namespaces, tmp_path):
    """The environment with a folder of its own for the state of testbeds."""
    return {"DSSYNC_STATE": str(tmp_path / "state")}


def call(*arguments, environment=None):
    return subprocess.run([TOOL, *map(str, arguments)], cwd=ROOT, env=ENVIRONMENT | (environment or {}), capture_output=True,
                          encoding="utf-8", timeout=PATIENCE)


def running_networks(environment):
    return json.loads(call("testbed", "status", "--format", "json", environment=environment).stdout)["testbeds"]


def test_bench_on_loopback_measures_every_method():
    result = call("bench", "--workers", 3, "--methods", "bsp-ring,ps,asp,ssp,local-sgd,ds-sync", "--bytes", "40kB", "--iterations", 2,
                  "--repeats", 2, "--format", "json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert not report["emulated"] and report["workers"] == 3
    assert [method["name"] for method in report["methods"]] == ["bsp-ring", "ps", "asp", "ssp", "local-sgd", "ds-sync"]
    for method in report["methods"]:
        assert len(method["blocks"]) == 2
        assert 0 < method["least_seconds"] <= method["seconds_per_iteration"] <= method["most_seconds"]
        assert method["predicted_seconds"] > 0 and method["bottleneck_share"] is None
        assert 0 <= method["cpu_busy_share"] <= 1


def test_bench_on_an_emulated_network_counts_what_links_carry(network, state):
    result = call("bench", "--topology", network, "--emulate", "--bytes", "800kB", "--iterations", 2, "--repeats", 2, "--format", "json",
                  environment=state)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["emulated"]
    for method in report["methods"]:
        # No link is faster than it may be, which is why no iteration is much faster than predicted.
        assert method["seconds_per_iteration"] > 0.8 * method["predicted_seconds"], method["name"]
        for link in method["links"]:
            assert link["share_of_capacity"] < 1.1, link
            # Frames have headers, and messages between workers have some, too.
            predicted = link["predicted_bytes_per_iteration"]
            assert predicted <= link["bytes_per_iteration"] < 1.3 * predicted + 20_000, (method["name"], link)
    ring, hierarchical, ds_sync = report["methods"]
    assert ds_sync["seconds_per_iteration"] < min(ring["seconds_per_iteration"], hierarchical["seconds_per_iteration"])
    assert running_networks(state) == []


def test_bench_text_names_methods_and_links(network, state):
    result = call("bench", "--topology", network, "--emulate", "--bytes", "100kB", "--iterations", 1, "--repeats", 1, environment=state)
    assert result.returncode == 0, result.stderr
    for word in ("bsp-ring", "bsp-hierarchical", "ds-sync", "predicted", "left up", "r1 in"):
        assert word in result.stdout


@pytest.mark.parametrize(("arguments", "complaint"), [
    (["--workers", 2, "--methods", "bsp-rong"], "--methods: "),
    (["--workers", 2, "--methods", "bsp-ring", "--overlap", "none"], "--overlap belongs to"),
    (["--topology", "nowhere.yaml"], "nowhere.yaml"),
    (["--workers", 2, "--bytes", "8"], "--bytes: "),
    ([], "--workers or --topology FILE is required"),
    (["--workers", 2, "--ignore-latency"], "--ignore-latency needs --emulate"),
])
def test_bad_usage_of_bench_is_named(arguments, complaint):
    result = call("bench", *arguments)
    assert result.returncode == 2 and complaint in result.stderr and "\n" not in result.stderr.strip()


def test_emulate_is_for_workers_that_dssync_starts(network):
    ranks = {"RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29999"}
    result = call("train", "--topology", network, "--emulate", *SMALL, environment=ranks)
    assert result.returncode == 2 and "--emulate is for workers that dssync starts itself" in result.stderr


def test_training_on_an_emulated_network_logs_network_and_traffic(network, state, tmp_path):
    log = tmp_path / "run.jsonl"
    result = call("train", "--topology", network, "--emulate", *SMALL, "--iterations", 8, "--evaluate-every-iterations", 4, "--log", log,
                  environment=state)
    assert result.returncode == 0, result.stderr
    lines = events(log)
    assert [line["event"] for line in lines[:2]] == ["started", "network"]
    assert lines[0]["command"][:2] == ["dssync", "train"] and "--emulate" in lines[0]["command"]
    told = lines[1]
    assert told["emulated"] and told["source"] == str(network)
    assert [node["name"] for node in told["nodes"]] == ["core", "left", "l0", "l1", "right", "r0", "r1"]
    assert told["plan"]["rounds"] and told["cost"]["seconds_per_iteration"] > 0
    assert [line["iteration"] for line in lines if line["event"] == "evaluated"] == [4, 8]
    traffic = [line for line in lines if line["event"] == "traffic"]
    assert [line["iteration"] for line in traffic] == [4, 8]
    first, second = ({link["name"]: link["bytes"] for link in line["links"]} for line in traffic)
    assert set(first) == {link["name"] for link in told["cost"]["links"]}
    assert all(0 < first[name] < second[name] for name in first)

    page = tmp_path / "report.html"
    report = call("report", log, "-o", page)
    assert report.returncode == 0, report.stderr
    assert "busiest uplink" in report.stdout and "ds-sync" in report.stdout and page.exists()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_run_leaves_no_testbed(network, state, tmp_path, stop):
    log = tmp_path / "run.jsonl"
    with running("--topology", network, "--emulate", *ENDLESS, "--log", log, environment=state) as process:
        wait_for_iterations(process, log)
        assert len(running_networks(state)) == 1
        os.kill(process.pid, stop)
        status, _, _ = finish(process)
        assert status != 0
    # Nobody can clean up after SIGKILL but `down`, which finds the record alone.
    left = running_networks(state)
    assert [found["running"] for found in left] == ([False] if stop == signal.SIGKILL else [])
    assert call("testbed", "down", "--all", environment=state).returncode == 0
    assert running_networks(state) == [] and os.listdir(state["DSSYNC_STATE"]) == []


def test_a_killed_worker_leaves_no_testbed(network, state, tmp_path):
    log = tmp_path / "run.jsonl"
    with running("--topology", network, "--emulate", *ENDLESS, "--log", log, environment=state) as process:
        wait_for_iterations(process, log)
        os.kill(worker_pid(process, 2), signal.SIGKILL)
        status, _, complaint = finish(process)
    assert status == 1 and "rank 2 was killed by signal 9" in complaint
    assert os.listdir(state["DSSYNC_STATE"]) == []


@pytest.mark.parametrize("flags", [["--topology", "FILE", "--emulate"], ["--topology", "auto", "--emulate=FILE"]], ids=["plain", "auto"])
def test_bench_emulates_without_root(as_nobody, network, flags):
    file = as_nobody.file(network)
    result = as_nobody("bench", *(flag.replace("FILE", file) for flag in flags), "--methods", "bsp-ring", "--bytes", "40kB",
                       "--iterations", 1, "--repeats", 1, "--format", "json", patience=PATIENCE)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["emulated"] and report["workers"] == 4
    assert os.listdir(as_nobody.state) == []


def test_training_emulates_without_root(as_nobody, network):
    result = as_nobody("train", "--topology", as_nobody.file(network), "--emulate", *SMALL, "--iterations", 3, patience=PATIENCE)
    assert result.returncode == 0, result.stderr
    assert os.listdir(as_nobody.state) == []


def test_an_interface_of_the_machine_is_not_looked_for_in_the_testbed(network, state):
    result = call("bench", "--topology", network, "--emulate", "--methods", "bsp-ring", "--bytes", "40kB", "--iterations", 1, "--repeats", 1,
                  environment=state | {"GLOO_SOCKET_IFNAME": "nowhere0"})
    assert result.returncode == 0, result.stderr


def test_bench_leaves_out_latency(network, state):
    network.write_text(network.read_text().replace("defaults: {", "defaults: {latency: 50ms, "))
    result = call("bench", "--topology", network, "--emulate", "--ignore-latency", "--methods", "bsp-ring", "--bytes", "40kB", "--iterations", 1,
                  "--repeats", 1, "--format", "json", environment=state)
    assert result.returncode == 0, result.stderr
    assert "dssync bench: note: the latency of 12 links is left out\n" in result.stderr
    # With it, a ring of four would take six steps of 100 ms at least.
    assert json.loads(result.stdout)["methods"][0]["predicted_seconds"] < 0.1


def test_bench_says_how_long_it_will_take(network, state):
    # A ring of four carries 3 MB over 25 Mbit/s in each of 5 iterations, and in 3 before: 8 x 0.96 s, and filling the pipeline.
    result = call("bench", "--topology", network, "--emulate", "--methods", "bsp-ring", "--bytes", "2MB", "--iterations", 5, "--repeats", 1,
                  environment=state)
    assert result.returncode == 0, result.stderr
    assert re.search(r"^dssync bench: this takes about [78](\.\d+)? s", result.stderr, re.MULTILINE), result.stderr
    assert re.search(r"^bsp-ring: block 1 of 1, iteration \d of 5$", result.stderr, re.MULTILINE), result.stderr
