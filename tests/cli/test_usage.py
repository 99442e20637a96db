"""What the tool says to wrong usage, bad files and closed pipes; exit statuses; help."""

import os
import pty
import subprocess

import pytest
from conftest import ENVIRONMENT, ROOT, TOOL, shown_on

TWO_RACKS = "examples/topologies/two-racks.yaml"
SWITCHES = "switches:\n  - {name: core}\n"


def test_help_of_the_tool(dssync):
    result = dssync("--help")
    assert result.returncode == 0 and result.stderr == ""
    assert "plan" in result.stdout and "--version" in result.stdout and "Exit status" in result.stdout


def test_help_of_the_verb(dssync):
    result = dssync("plan", "--help")
    assert result.returncode == 0 and result.stderr == ""
    for flag in ("topology", "bytes", "disagreement", "group-limit", "schedule", "format", "nic", "uplink", "color"):
        assert f"--{flag} " in result.stdout


def test_version(dssync):
    result = dssync("--version")
    assert result.returncode == 0
    name, version = result.stdout.split()
    assert name == "dssync" and version.count(".") == 2


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "dssync: a verb is required, such as plan; see dssync --help"),
        (["fly"], "dssync: unknown verb 'fly'; see dssync --help"),
        (["--fast"], "dssync: unknown flag '--fast'; see dssync --help"),
        (["plan"], "dssync plan: --topology is required; see dssync plan --help"),
        (["plan", "--topolgy", "x"], "dssync plan: unknown flag '--topolgy'; see dssync plan --help"),
        (["plan", "--topology", TWO_RACKS, "more"], "dssync plan: unknown argument 'more'; see dssync plan --help"),
    ],
    ids=["no verb", "verb", "flag of the tool", "no topology", "flag", "argument"],
)
def test_wrong_usage(dssync, arguments, message):
    result = dssync(*arguments)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", message + "\n")


@pytest.mark.parametrize(
    "flag, value, expected",
    [
        ("--bytes", "8", "no unit"),
        ("--bytes", "-1MB", "negative"),
        ("--bytes", "0MB", "positive"),
        ("--bytes", "many", "not a number"),
        ("--disagreement", "abc", "a number of at least 0"),
        ("--disagreement", "-1", "a number of at least 0"),
        ("--disagreement", "nan", "a number of at least 0"),
        ("--disagreement", "inf", "a number of at least 0"),
        ("--disagreement", "0.5x", "a number of at least 0"),
        ("--group-limit", "1", "a whole number of at least 2"),
        ("--group-limit", "0", "a whole number of at least 2"),
        ("--group-limit", "x", "a whole number of at least 2"),
        ("--group-limit", "2.5", "a whole number of at least 2"),
        ("--nic", "10", "no unit"),
        ("--uplink", "-1Gbps", "negative"),
        ("--schedule", "best", "{auto,published}"),
        ("--format", "xml", "{text,json}"),
        ("--color", "blue", "{auto,always,never}"),
    ],
)
def test_wrong_values(refusal, flag, value, expected):
    message = refusal("--topology", TWO_RACKS, flag, value)
    assert flag in message and value in message and expected in message


@pytest.mark.parametrize(
    "text, line, words",
    [
        ("hosts:\n  - {name: a, nic: 1Gbps, colour: red}\n", 2, ["colour"]),
        (SWITCHES + "  - {name: rack, parent: core}\nhosts:\n  - {name: a, switch: rack, nic: 1Gbps}\n", 3, ["uplink", "rack"]),
        ("switches:\n  - {name: a, parent: b, uplink: 1Gbps}\n  - {name: b, parent: a, uplink: 1Gbps}\n"
         "hosts:\n  - {name: h, switch: a, nic: 1Gbps}\n", 2, ["a", "b"]),
        ("hosts:\n  - {name: a, nic: 1Gbps}\n  - {name: a, nic: 1Gbps}\n", 3, ["a"]),
        ("hosts:\n  - {name: a, nic: 0Gbps}\n", 2, ["0Gbps", "positive"]),
        ("hosts:\n  - {name: a, nic: -1Gbps}\n", 2, ["-1Gbps", "negative"]),
        ("hosts:\n  - {name: a, nic: 100}\n", 2, ["100", "unit"]),
        (SWITCHES + "hosts:\n  - {name: a, switch: nowhere, nic: 1Gbps}\n", 4, ["nowhere"]),
        ("", None, ["empty"]),
        ("hosts: " + "[" * 5000 + "]" * 5000 + "\n", None, ["nest"]),
    ],
    ids=["unknown key", "no uplink", "cycle", "duplicate host", "zero rate", "negative rate", "no unit", "unknown switch",
         "empty", "deep"],
)
def test_bad_files(refusal, tmp_path, text, line, words):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    message = refusal("--topology", file)
    assert f"{file}:" in message
    if line is not None:
        assert f"{file}:{line}: " in message
    for word in words:
        assert word in message


def test_noise(refusal, tmp_path):
    file = tmp_path / "noise.yaml"
    state, noise = 1, bytearray()
    for _ in range(10_000_000 // 8 + 1):  # xorshift: the same noise every time
        state ^= (state << 13) & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 7
        state ^= (state << 17) & 0xFFFFFFFFFFFFFFFF
        noise += state.to_bytes(8, "little")
    file.write_bytes(noise)
    assert str(file) in refusal("--topology", file)


def test_missing_file(refusal):
    assert "nowhere.yaml" in refusal("--topology", "nowhere.yaml")


def test_impossible_limit_is_answered_with_one_that_works(refusal, dssync):
    arguments = ["--topology", TWO_RACKS, "--group-limit", "3"]
    message = refusal(*arguments, "--disagreement", "0.01")
    assert "no schedule with groups of at most 3 keeps the disagreement within 0.01" in message
    smallest = message.rsplit("(--disagreement ", 1)[1].rstrip(")")
    assert dssync("plan", *arguments, "--disagreement", smallest).returncode == 0


def test_assumptions_are_told_and_can_be_given(dssync):
    arguments = ["plan", "--topology", "examples/topologies/slurm-topology.conf"]
    assert "dssync plan: note: " in dssync(*arguments).stderr
    assert "NIC 25 Gbit/s" in dssync(*arguments, "--nic", "25Gbps").stdout


def run_into(stdout, *arguments):
    return subprocess.run([TOOL, *arguments], cwd=ROOT, env=ENVIRONMENT, stdout=stdout,
                          stderr=subprocess.PIPE, encoding="utf-8", timeout=120)


@pytest.mark.parametrize("arguments", [["plan", "--topology", TWO_RACKS], ["--help"]], ids=["plan", "help"])
def test_full_disk_is_a_failure(arguments):
    with open("/dev/full", "w") as full:
        result = run_into(full, *arguments)
    assert result.returncode == 1
    assert "cannot write to standard output: No space left on device" in result.stderr


def test_closed_pipe_is_a_failure():
    reading, writing = os.pipe()
    os.close(reading)
    result = run_into(writing, "plan", "--topology", TWO_RACKS)
    os.close(writing)
    assert result.returncode == 1
    assert "cannot write to standard output: Broken pipe" in result.stderr


@pytest.mark.parametrize("environment, painted", [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_a_terminal_gets_color_unless_it_declines(environment, painted):
    ours, theirs = pty.openpty()
    process = subprocess.Popen([TOOL, "plan", "--topology", TWO_RACKS], cwd=ROOT,
                               env=ENVIRONMENT | environment, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    output = shown_on(ours)
    assert process.wait(timeout=60) == 0
    assert (b"\x1b[" in output) == painted
