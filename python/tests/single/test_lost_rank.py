"""A rank that ends takes nobody else into a silent wait."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).with_name("loses_a_rank.py")


@pytest.mark.parametrize(
    "end, status, message", [("silence", 7, "rank 1 "), ("exception", 1, "rank 1 failed: ValueError: a bad batch")])
def test_the_others_say_who_is_lost(end, status, message):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # Not under torchrun, which would end the others itself.
    ranks = []
    for rank in range(2):
        variables = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environment = os.environ | {name: str(value) for name, value in variables.items()}
        ranks.append(subprocess.Popen([sys.executable, PROGRAM, end], env=environment, stderr=subprocess.PIPE, text=True))
    outputs = [process.communicate(timeout=100)[1] for process in ranks]
    assert ranks[1].returncode == status
    assert ranks[0].returncode == 1
    assert f"dssync.PeerError: rank 0: averaging with ranks 0, 1: {message}" in outputs[0]
