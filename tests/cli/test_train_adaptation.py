"""`dssync train` on a network that changes while it trains."""

import json
import signal
import statistics
import subprocess

import pytest
from conftest import ENVIRONMENT, ROOT, TOOL
from train_helper import SMALL, eventually, events, finish, needs_torch, running, train, two_racks, wait_for_iterations

pytestmark = needs_torch

# A model of 1.6 MB, which takes a tenth of a second to average.
LARGE = ["--data", "synthetic", "--train-examples", "512", "--test-examples", "64", "--batch", "2", "--model", "mlp", "--hidden", "500",
         "--epochs", "1000000", "--evaluate-every", "0"]


def test_a_slow_core_is_found_and_planned_around(needs_namespaces, tmp_path):
    network, log = tmp_path / "racks.yaml", tmp_path / "run.jsonl"
    network.write_text(two_racks("100Mbps", "100Mbps"))
    environment = {"DSSYNC_STATE": str(tmp_path / "state")}

    def contend(link, rate):
        subprocess.run([TOOL, "testbed", "contend", link, rate], cwd=ROOT, env=ENVIRONMENT | environment, check=True, timeout=60)

    def replanned():
        return [event for event in events(log) if event["event"] == "replanned"]

    with running("--topology", network, "--emulate", "--log", log, *LARGE, environment=environment) as process:
        wait_for_iterations(process, log, 12)
        assert replanned() == []
        for rack in ("left", "right"):
            contend(rack, "10Mbps")
        eventually(replanned, "a new plan for the slow core")
        change = replanned()[0]
        wait_for_iterations(process, log, change["iteration"] + 20)
        for rack in ("left", "right"):
            contend(rack, "100Mbps")
        eventually(lambda: len(replanned()) > 1, "a new plan for the core that is back")
        wait_for_iterations(process, log, replanned()[1]["iteration"] + 3)
        process.send_signal(signal.SIGTERM)
        _, _, stderr = finish(process)
    took = [event["iteration_seconds"] for event in events(log) if event["event"] == "iteration"]
    first, second = (event["iteration"] for event in replanned()[:2])
    # They are predicted to take a third of what the last ones with the old plan took.
    assert statistics.median(took[first:first + 20]) < statistics.median(took[first - 3:first]) / 1.5
    faster = [link["name"] for link in replanned()[1]["links"] if link["to_bytes_per_second"] > 1.5 * link["from_bytes_per_second"]]
    assert {name.split()[0] for name in faster} <= {"left", "right"} and faster and second > first
    slower = [link["name"] for link in change["links"] if link["to_bytes_per_second"] < link["from_bytes_per_second"] / 3]
    assert {name.split()[0] for name in slower} <= {"left", "right"} and slower
    assert change["seconds_per_iteration_after"] < change["seconds_per_iteration_before"]
    assert f"after iteration {change['iteration']}: {change['reason']}" in stderr


def test_a_flow_of_another_job_is_found_on_the_nics_that_it_uses(needs_namespaces, tmp_path):
    network, log = tmp_path / "racks.yaml", tmp_path / "run.jsonl"
    network.write_text(two_racks("100Mbps", "100Mbps"))
    environment = {"DSSYNC_STATE": str(tmp_path / "state")}

    def replanned():
        return [event for event in events(log) if event["event"] == "replanned"]

    with running("--topology", network, "--emulate", "--log", log, *LARGE, environment=environment) as process:
        wait_for_iterations(process, log, 12)
        flow = subprocess.Popen([TOOL, "testbed", "contend", "l1 out", "10Mbps", "--traffic"], cwd=ROOT, env=ENVIRONMENT | environment)
        try:
            eventually(replanned, "a new plan for what the flow leaves")
        finally:
            flow.terminate()
            flow.wait()
        process.send_signal(signal.SIGTERM)
        finish(process)
    slower = [link for link in replanned()[0]["links"] if link["to_bytes_per_second"] < link["from_bytes_per_second"] / 1.5]
    assert "l1 out" in {link["name"] for link in slower} <= {"l1 out", "l0 in"}
    for link in slower:
        assert link["others_bytes_per_second"] > link["from_bytes_per_second"] / 3  # 90 Mbit/s, and some iterations without
    assert "(others send " in replanned()[0]["reason"]


def test_nothing_changes_on_loopback(tmp_path):
    """The links of the file are slower than this machine's, so nothing is ever slower than they say."""
    network, log = tmp_path / "racks.yaml", tmp_path / "run.jsonl"
    network.write_text(two_racks("2Mbps", "2Mbps"))
    stdout, _ = train("--topology", network, "--log", log, *SMALL, "--epochs", 2, "--format", "json")
    assert json.loads(stdout)["plan_changes"] == 0
    assert not any(event["event"] == "replanned" for event in events(log))


@pytest.mark.parametrize("mode", ["layered", "combine", "none"])
def test_the_limit_can_be_steered(tmp_path, mode):
    network, log, trace = tmp_path / "racks.yaml", tmp_path / "run.jsonl", tmp_path / "trace.json"
    network.write_text(two_racks("2Mbps", "2Mbps"))
    stdout, _ = train("--topology", network, "--log", log, "--trace", trace, *SMALL, "--epochs", 12, "--learning-rate", "0.01",
                      "--disagreement", "auto", "--overlap", mode, "--format", "json")
    replanned = [event for event in events(log) if event["event"] == "replanned"]
    assert json.loads(stdout)["plan_changes"] == len(replanned) > 0
    content = json.loads(trace.read_text())
    spans = content["traceEvents"] if isinstance(content, dict) else content
    for rank in range(4):
        named = [span["name"] for span in spans if span["pid"] == rank and span["name"].startswith("new plan: ")]
        assert named == [f"new plan: {event['reason']}" for event in replanned]
    [started] = [event for event in events(log) if event["event"] == "started"]
    assert started["plan"]["steady_disagreement"] <= 0.5 / 16 + 1e-9  # it starts tight
    for event in replanned:
        assert "limit on S" in event["reason"]
        assert event["plan"]["mixing"]["steady_disagreement"] <= 0.5 + 1e-9
