"""`dssync testbed`: networks of namespaces from the command line, and that nothing is ever left of them."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import ENVIRONMENT, ROOT, TOOL, eventually

TWO_RACKS = "examples/topologies/two-racks.yaml"
PATIENCE = 30


def call(*arguments, state, **options):
    """The tool with a folder of its own for the state of testbeds."""
    environment = ENVIRONMENT | {"DSSYNC_STATE": str(state)}
    return subprocess.run([TOOL, "testbed", *map(str, arguments)], cwd=ROOT, env=environment, capture_output=True,
                          encoding="utf-8", timeout=PATIENCE, **options)


@pytest.fixture
def testbed(tmp_path):
    """`dssync testbed` that must succeed; returns its stdout. Whatever it built is ended."""
    state = tmp_path / "state"

    def run(*arguments):
        result = call(*arguments, state=state)
        assert result.returncode == 0, result.stderr
        return result.stdout

    run.state = state
    yield run
    call("down", "--all", state=state)


@pytest.fixture
def racks(needs_namespaces, testbed):
    """A running testbed of two racks, called lab."""
    testbed("up", "--topology", TWO_RACKS, "--name", "lab")
    return testbed


def links(testbed):
    [found] = json.loads(testbed("status", "--format", "json"))["testbeds"]
    return {link["name"]: link for link in found["links"]}


def megabits(testbed, link):
    return links(testbed)[link]["rate_bytes_per_second"] * 8 / 1e6


def start(testbed, *arguments):
    """The tool in the background; must be waited for."""
    environment = ENVIRONMENT | {"DSSYNC_STATE": str(testbed.state)}
    return subprocess.Popen([TOOL, "testbed", *map(str, arguments)], cwd=ROOT, env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, encoding="utf-8",
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def refusal(testbed, *arguments, status=2):
    """The tool's line on stderr where it must refuse."""
    result = call(*arguments, state=testbed.state)
    assert result.returncode == status, result.stderr
    assert result.stdout == "" and result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith(f"dssync testbed {arguments[0]}: ")
    return result.stderr.strip()


def machine():
    """What must not change: this machine's interfaces, and network namespaces in which there is a process."""
    spaces = set()
    for folder in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            spaces.add(os.readlink(folder / "ns/net"))
    return sorted(os.listdir("/sys/class/net")), spaces


def test_up_says_how_to_go_on(needs_namespaces, testbed):
    text = testbed("up", "--topology", TWO_RACKS)
    assert text.startswith("testbed-1: 8 hosts and 3 switches of examples/topologies/two-racks.yaml, process ")
    assert "  a0  10.77.0.1\n" in text and "  b3  10.77.0.8\n" in text
    for verb in ("exec --name testbed-1 a0 --", "status testbed-1", "down testbed-1"):
        assert f"dssync testbed {verb}" in text


def test_status_tells_hosts_and_links(racks):
    [found] = json.loads(racks("status", "--format", "json"))["testbeds"]
    assert list(found) == ["name", "topology", "process", "running", "fabric_address", "hosts", "links"]
    assert found["name"] == "lab" and found["topology"] == TWO_RACKS and found["running"] is True
    assert found["hosts"][4] == {"name": "b0", "address": "10.77.0.5"}
    assert len(found["links"]) == 20
    assert found["links"][0] == {"name": "rack-a up", "capacity_bytes_per_second": 6_250_000.0,
                                 "rate_bytes_per_second": 6_250_000.0, "bytes": 0, "dropped_frames": 0}
    text = racks("status", "lab")
    assert "  rack-a up       50 Mbit/s           all         0 B         0\n" in text


def test_exec_runs_in_the_host(racks):
    code = "import socket; s = socket.socket(); s.bind(('10.77.0.2', 0)); print('bound')"
    assert racks("exec", "a1", "--", sys.executable, "-c", code) == "bound\n"
    assert call("exec", "a0", "--", sys.executable, "-c", code, state=racks.state).returncode == 1


@pytest.mark.parametrize("command, status", [("exit 0", 0), ("exit 37", 37), ("kill -TERM $$", -signal.SIGTERM)])
def test_exec_passes_on_how_it_ended(racks, command, status):
    assert call("exec", "--name", "lab", "a0", "--", "sh", "-c", command, state=racks.state).returncode == status


def test_exec_passes_on_input_and_signals(racks):
    process = start(racks, "exec", "a0", "--", "sleep", "1000")
    eventually(lambda: pathlib.Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n", "the command")
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == -signal.SIGINT
    process.communicate()


def test_hosts_talk_to_each_other(racks):
    server = start(racks, "exec", "b0", "--", sys.executable, "-u", "-c",
                   "import socket; s = socket.create_server(('', 4000)); print('ready'); print(len(s.accept()[0].makefile('rb').read()))")
    assert server.stdout.readline() == "ready\n"
    racks("exec", "a0", "--", sys.executable, "-c",
          "import socket; socket.create_connection(('10.77.0.5', 4000)).sendall(bytes(300000))")
    assert server.communicate(timeout=PATIENCE)[0] == "300000\n"
    carried = {name: link["bytes"] for name, link in links(racks).items()}
    for name in ("a0 out", "rack-a up", "rack-b down", "b0 in"):
        assert 300_000 < carried[name] < 330_000
    assert carried["a1 in"] == carried["b1 in"] == 0


def test_contend_stays_until_changed(racks):
    racks("contend", "rack-a", "10Mbps")
    assert megabits(racks, "rack-a up") == megabits(racks, "rack-a down") == 10
    racks("contend", "rack-a up", "50Mbps", "--name", "lab")
    assert megabits(racks, "rack-a up") == 50 and megabits(racks, "rack-a down") == 10
    assert "10 Mbit/s" in racks("status")


def test_contend_gives_back(racks):
    racks("contend", "a0 out", "10Mbps", "--for", "100ms")
    assert megabits(racks, "a0 out") == 200


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_contend_gives_back_when_interrupted(racks, sent):
    process = start(racks, "contend", "rack-b", "5Mbps", "--for", "1000s")
    eventually(lambda: megabits(racks, "rack-b down") == 5, "the lower rate")
    process.send_signal(sent)
    assert process.wait(PATIENCE) == 1
    assert f"interrupted by signal {sent.value} " in process.communicate()[1]
    assert megabits(racks, "rack-b up") == megabits(racks, "rack-b down") == 50


def test_contend_waits_before(racks):
    process = start(racks, "contend", "a0 in", "10Mbps", "--after", "1000s")
    time.sleep(0.2)
    assert megabits(racks, "a0 in") == 200
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 1
    assert "nothing was changed" in process.communicate()[1]


def test_contend_takes_effect_after_its_time(racks):
    begin = time.monotonic()
    process = start(racks, "contend", "a0 in", "10Mbps", "--after", "1s")
    eventually(lambda: megabits(racks, "a0 in") == 10, "the lower rate")
    assert time.monotonic() - begin >= 1
    assert process.wait(PATIENCE) == 0
    assert "a0 in has 10 Mbit/s now" in process.communicate()[1]
    assert megabits(racks, "a0 in") == 10


def test_of_two_that_contend_the_last_one_gives_back(racks):
    first = start(racks, "contend", "rack-b up", "20Mbps", "--for", "1000s")
    eventually(lambda: megabits(racks, "rack-b up") == 20, "the first rate")
    second = start(racks, "contend", "rack-b up", "5Mbps", "--for", "1000s")
    eventually(lambda: megabits(racks, "rack-b up") == 5, "the second rate")
    for process, rate in ((first, 5), (second, 50)):
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 1
        process.communicate()
        assert megabits(racks, "rack-b up") == rate


def test_contend_with_no_traffic_to_send(racks):
    racks("contend", "rack-a up", "50Mbps", "--traffic", "--for", "300ms")
    assert links(racks)["rack-a up"]["bytes"] == 0


def test_contend_with_traffic(racks):
    process = start(racks, "contend", "rack-a up", "30Mbps", "--traffic")
    before = eventually(lambda: links(racks)["rack-a up"]["bytes"], "traffic")
    eventually(lambda: links(racks)["rack-a up"]["bytes"] > before + 500_000, "more traffic")
    assert megabits(racks, "rack-a up") == 50
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    said = process.communicate()[1]
    assert "20 Mbit/s of UDP from a0 to b0 over rack-a up" in said and "the traffic has ended" in said


def test_traffic_ends_with_the_testbed(racks):
    process = start(racks, "contend", "rack-a up", "30Mbps", "--traffic", "--for", "1000s")
    eventually(lambda: links(racks)["rack-a up"]["bytes"], "traffic")
    assert racks("down").startswith("lab: ended, ")
    assert process.wait(PATIENCE) == 1
    assert "is the testbed gone?" in process.communicate()[1]


def test_down_is_idempotent_and_says_what_it_did(racks):
    assert racks("down", "lab") == "lab: ended, 1 process\n"
    assert racks("down", "lab") == "lab: not there\n"
    assert racks("down") == racks("down", "--all") == "no testbed is there\n"
    assert racks("status") == "no testbed is there\n"


def test_down_ends_what_runs_inside(racks):
    process = start(racks, "exec", "a0", "--", "sleep", "1000")
    eventually(lambda: pathlib.Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n", "the command")
    assert racks("down") == "lab: ended, 2 processes\n"
    assert process.wait(PATIENCE) == -signal.SIGKILL
    process.communicate()


def test_several_at_once(racks):
    racks("up", "--topology", TWO_RACKS)
    racks("contend", "--name", "testbed-1", "a0", "10Mbps")
    rates = {found["name"]: found["links"][2]["rate_bytes_per_second"]
             for found in json.loads(racks("status", "--format", "json"))["testbeds"]}
    assert rates == {"lab": 25e6, "testbed-1": 1.25e6}
    for arguments in (["down"], ["exec", "a0", "--", "true"], ["contend", "a0", "10Mbps"]):
        assert "lab, testbed-1" in refusal(racks, *arguments)
    assert racks("down", "--all") == "lab: ended, 1 process\ntestbed-1: ended, 1 process\n"


def test_killed_keeper_is_cleaned_up(racks):
    before = machine()[0]
    [found] = json.loads(racks("status", "--format", "json"))["testbeds"]
    inside = start(racks, "exec", "a0", "--", "sleep", "1000")
    eventually(lambda: pathlib.Path(f"/proc/{inside.pid}/comm").read_text() == "sleep\n", "the command")
    os.kill(found["process"], signal.SIGKILL)
    eventually(lambda: "left over" in racks("status"), "the keeper's end")
    assert "no testbed is running" in refusal(racks, "exec", "a0", "--", "true")
    assert racks("down") == "lab: removed what a killed process had left, 1 process among it\n"
    assert inside.wait(PATIENCE) == -signal.SIGKILL
    inside.communicate()
    assert os.listdir(racks.state) == [] and machine()[0] == before


def test_many_leave_nothing(needs_namespaces, testbed):
    before = machine()
    for _ in range(50):
        testbed("up", "--topology", TWO_RACKS)
        testbed("down")
    assert os.listdir(testbed.state) == []
    assert machine()[0] == before[0]
    # Other programs of the machine may come and go; what fifty testbeds leave would stay.
    eventually(lambda: len(machine()[1] - before[1]) < 10, "as few network namespaces as before")


def test_unprivileged_user(as_nobody):
    file = as_nobody.file(ROOT / TWO_RACKS)
    assert as_nobody("testbed", "up", "--topology", file, "--name", "mine").returncode == 0
    assert as_nobody("testbed", "exec", "a0", "--", "sh", "-c", "exit 5").returncode == 5
    assert as_nobody("testbed", "contend", "a0 out", "10Mbps").returncode == 0
    assert "10 Mbit/s" in as_nobody("testbed", "status").stdout
    assert as_nobody("testbed", "down").stdout == "mine: ended, 1 process\n"
    assert os.listdir(as_nobody.state) == []


def test_settings_that_cannot_be_written_are_named(needs_namespaces, testbed):
    """As in a container whose /proc/sys is read-only."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("only root with unshare can have another /proc/sys")
    mounts = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys || exit 77"
    result = subprocess.run(["unshare", "--mount", "sh", "-c", f'{mounts}; exec "$@"', "sh", TOOL, "testbed", "up", "--topology", TWO_RACKS],
                            cwd=ROOT, env=ENVIRONMENT | {"DSSYNC_STATE": str(testbed.state)}, capture_output=True, encoding="utf-8",
                            timeout=PATIENCE)
    if result.returncode == 77:
        pytest.skip(f"cannot make /proc/sys read-only: {result.stderr.strip()}")
    assert result.returncode == 1
    assert "this machine cannot emulate the network: " in result.stderr and "/proc/sys/net/" in result.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["up", "--topology", "nowhere.yaml"], ["nowhere.yaml"]),
        (["up", "--topology", TWO_RACKS, "--name", "a/b"], ["a/b", "letters, digits"]),
        (["up", "--topology", TWO_RACKS, "--name", "lab"], ["a testbed lab already"]),
        (["exec", "a9", "--", "true"], ['"a9"', 'did you mean "a0"?']),
        (["exec", "rack-a", "--", "true"], ['no host "rack-a"']),
        (["exec", "a0", "--", "no-such-program"], ["no-such-program"]),
        (["exec", "--name", "lap", "a0", "--", "true"], ['"lap"', '"lab"']),
        (["contend", "rack-c up", "10Mbps"], ['"rack-c up"', 'did you mean "rack-a up"?']),
        (["contend", "core", "10Mbps"], ['"core"', "rack-a up"]),
        (["contend", "rack-a up", "51Mbps"], ["RATE", "at most 50 Mbit/s", "rack-a up", "51 Mbit/s"]),
        (["contend", "rack-a up", "10"], ["RATE", "no unit"]),
        (["contend", "rack-a up", "10Mbps", "--for", "soon"], ["--for", "soon"]),
        (["contend", "rack-a up", "100bps"], ["100 bit/s", "cannot be emulated"]),
        (["status", "lap"], ['"lap"']),
        (["status", "--format", "xml"], ["--format", "xml"]),
        (["down", "../lab"], ["../lab"]),
    ],
)
def test_bad_input(racks, arguments, words):
    message = refusal(racks, *arguments)
    for word in words:
        assert word in message


def test_latency_that_the_kernel_cannot_do(needs_namespaces, testbed, tmp_path):
    file = tmp_path / "far.yaml"
    file.write_text('hosts:\n  - {name: "h[0-1]", nic: 100Mbps, latency: 5ms}\n')
    result = call("up", "--topology", file, state=testbed.state)
    if result.returncode == 0:
        pytest.skip("this kernel has sch_netem")
    assert result.returncode == 1
    for word in ("sch_netem", "h0 out", "'latency:'", "--ignore-latency"):
        assert word in result.stderr


def test_latency_can_be_left_out(needs_namespaces, testbed, tmp_path):
    file = tmp_path / "far.yaml"
    file.write_text('hosts:\n  - {name: "h[0-1]", nic: 100Mbps, latency: 5ms}\n')
    result = call("up", "--topology", file, "--ignore-latency", state=testbed.state)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "dssync testbed up: note: the latency of 4 links is left out\n"
    queues = testbed("exec", "h0", "--", "tc", "qdisc", "show", "dev", "eth0")
    assert "htb" in queues and "netem" not in queues


@pytest.mark.parametrize(
    "verb, words",
    [("up", ["--topology FILE", "--ignore-latency"]), ("down", ["NAME", "--all"]), ("status", ["--format"]), ("exec", ["HOST", "COMMAND"]),
     ("contend", ["LINK", "RATE", "--after", "--for", "--traffic"])])
def test_help(testbed, verb, words):
    assert verb in testbed("--help")
    text = testbed(verb, "--help")
    for word in words:
        assert word in text
