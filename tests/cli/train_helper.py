"""How the tests of `dssync train` start it, watch it and make sure that nothing is left of it."""

import contextlib
import functools
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import conftest
import pytest
from conftest import ENVIRONMENT, ROOT, TOOL

PROGRAM = TOOL.parent / "dssync-torch"
needs_torch = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not there: built without PyTorch")

# Two seconds of work instead of minutes.
SMALL = ["--data", "synthetic", "--train-examples", "512", "--test-examples", "64", "--batch", "8", "--model", "mlp"]
# Enough iterations to be interrupted in.
ENDLESS = [*SMALL, "--epochs", "1000000", "--evaluate-every", "0"]
PATIENCE = 60
eventually = functools.partial(conftest.eventually, patience=PATIENCE)


def two_racks(nic, uplink):
    """A topology file: two hosts in each of the racks left and right."""
    return f"""
defaults: {{nic: {nic}}}
switches:
  - {{name: core}}
  - {{name: left, parent: core, uplink: {uplink}}}
  - {{name: right, parent: core, uplink: {uplink}}}
hosts:
  - {{name: "l[0-1]", switch: left}}
  - {{name: "r[0-1]", switch: right}}
"""


def free_port():
    """A port that nobody uses now. It may be taken in between; no test fails for good because of that."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def default_signals():
    # A test runner in the background may ignore Ctrl-C, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def start(*arguments, environment=None):
    """`dssync train` in a process group and session of its own."""
    return subprocess.Popen(
        [TOOL, "train", *map(str, arguments)], cwd=ROOT, env=ENVIRONMENT | (environment or {}), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True, preexec_fn=default_signals)


def members(session):
    """The processes of a session that still run, as {pid: name}."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            state, _, _, owner = rest.split()[:4]
            if int(owner) == session and state not in "ZX":
                found[int(folder.name)] = name
    return found


@contextlib.contextmanager
def running(*arguments, environment=None):
    """Starts `dssync train` and ends whatever is left of it."""
    process = start(*arguments, environment=environment)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            stream.close()


def worker_pid(process, rank):
    """The process of a rank, as soon as it is there."""
    name = f"dssync-rank-{rank}"
    return eventually(lambda: next((pid for pid, found in members(process.pid).items() if found == name), None), name)


def events(log):
    """The lines of a log; each must be valid."""
    return [json.loads(line) for line in pathlib.Path(log).read_text().splitlines()]


def wait_for_iterations(process, log, count=3):
    """Until the training is under way."""

    def done():
        if process.poll() is not None:
            pytest.fail(f"ended with status {process.returncode} before it trained: {process.stderr.read()}")
        with contextlib.suppress(OSError, json.JSONDecodeError):
            return sum(event["event"] == "iteration" for event in events(log)) >= count

    eventually(done, f"{count} iterations in {log}")


def finish(process, patience=PATIENCE):
    """Status, stdout and stderr at the end; nothing may be left of it."""
    stdout, stderr = process.communicate(timeout=patience)
    eventually(lambda: not members(process.pid), "the end of all processes", patience=5)
    return process.returncode, stdout, stderr


def train(*arguments, environment=None):
    """`dssync train` that must succeed; returns stdout and stderr."""
    with running(*arguments, environment=environment) as process:
        status, stdout, stderr = finish(process)
    assert status == 0, stderr
    return stdout, stderr


def refusal(*arguments, environment=None):
    """`dssync train` that must refuse its input before any worker starts; returns its line on stderr."""
    with running(*arguments, environment=environment) as process:
        status, stdout, stderr = finish(process)
    assert status == 2, stderr
    assert stdout == ""
    assert stderr.startswith("dssync train: ") and stderr.count("\n") == 1, stderr
    return stderr.strip()


def variables(rank, size, port, host="127.0.0.1", **more):
    """The environment of one worker as torchrun sets it, but for its agent's store."""
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": host, "MASTER_PORT": str(port)} | more


def ranks_by_hand(size, arguments_of, patience=PATIENCE, **more):
    """Starts the ranks as another launcher would, each with arguments_of(rank); None starts no such rank. `more` are further
    variables. Returns a list of (status, stdout, stderr)."""
    port = free_port()
    with contextlib.ExitStack() as stack:
        processes = []
        for rank in range(size):
            arguments = arguments_of(rank)
            if arguments is not None:
                processes.append(stack.enter_context(running(*arguments, environment=variables(rank, size, port, **more))))
        return [finish(process, patience) for process in processes]
