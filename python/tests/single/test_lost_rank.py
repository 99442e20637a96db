"""A rank that ends takes nobody else into a silent wait."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest

PROGRAM = pathlib.Path(__file__).with_name("loses_a_rank.py")


def start(how, lost):
    """Both ranks. Not under torchrun, which would end the others itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = []
    for rank in range(2):
        variables = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environment = os.environ | {name: str(value) for name, value in variables.items()}
        command = [sys.executable, PROGRAM, how, str(lost)]
        ranks.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True))
    return ranks


@pytest.mark.parametrize(
    "end, status, message", [("silence", 7, "rank 1 "), ("exception", 1, "rank 1 failed: ValueError: a bad batch")])
def test_the_others_say_who_is_lost(end, status, message):
    ranks = start(end, lost=1)
    outputs = [process.communicate(timeout=100)[1] for process in ranks]
    assert ranks[1].returncode == status
    assert ranks[0].returncode == 1
    assert f"dssync.PeerError: rank 0: averaging with ranks 0, 1: {message}" in outputs[0]


@pytest.mark.parametrize("stopped", [0, 1])  # rank 0 serves the store
def test_the_others_say_who_stands_still(stopped):
    ranks = start("stop", stopped)
    other = 1 - stopped
    try:
        while state_of(ranks[stopped]) != "T":
            assert ranks[other].poll() is None, ranks[other].communicate()
            time.sleep(0.02)
        since = time.monotonic()
        error = next(line for line in ranks[other].stderr if "PeerError" in line)
        seconds = time.monotonic() - since
        ranks[other].communicate(timeout=100)
    finally:
        ranks[stopped].kill()
        ranks[stopped].communicate()
    print(f"rank {other} named the stopped rank {stopped} after {seconds:.1f} s")
    assert ranks[other].returncode == 1
    assert f"dssync.PeerError: rank {other}: averaging with ranks 0, 1: rank {stopped} gives no sign of life" in error
    assert seconds < 15


def test_a_silent_store_that_no_rank_serves_is_blamed_on_nobody():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    program = PROGRAM.with_name("store_elsewhere.py")
    started = []

    def start(role):
        process = subprocess.Popen([sys.executable, program, role, port], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    def say(processes, line):
        for process in processes:
            process.stdin.write(line + "\n")
            process.stdin.flush()

    try:
        server = start("serve")
        assert server.stdout.readline() == "serving\n"
        ranks = [start("0"), start("1")]
        assert [rank.stdout.readline() for rank in ranks] == ["training\n"] * 2
        server.send_signal(signal.SIGSTOP)
        say(ranks, "the store stands still")
        assert [rank.stdout.readline() for rank in ranks] == ["trained\n"] * 2
        server.send_signal(signal.SIGCONT)
        say(ranks, "it goes on")
        assert [rank.wait(100) for rank in ranks] == [0, 0]
    finally:
        for process in started:
            process.kill()
            process.communicate()


def state_of(process):
    """As the kernel says: "T" is stopped."""
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
