"""How the tests of the command line run the tool: its path is in DSSYNC, the examples are those of the repository."""

import os
import pathlib
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted(p for p in (ROOT / "examples/topologies").iterdir() if p.suffix in (".yaml", ".conf"))
# Only what a test sets may steer the output.
ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "TERM": "xterm"}


TOOL = pathlib.Path(os.environ.get("DSSYNC", "dssync")).resolve()


def shown_on(terminal):
    """All that is written to a pseudo-terminal until its other end is closed; closes it."""
    output = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        output += chunk
    os.close(terminal)
    return output


def eventually(condition, what, patience=30):
    """The first true value of the condition."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    pytest.fail(f"{what}: not within {patience} s")


@pytest.fixture(scope="session")
def needs_namespaces(tmp_path_factory):
    """Skips where this machine cannot build testbeds."""
    folder = tmp_path_factory.mktemp("probe")
    file = folder / "pair.yaml"
    file.write_text("switches: [{name: s}]\nhosts: [{name: 'h[0-1]', switch: s, nic: 10Mbps}]\n")
    environment = ENVIRONMENT | {"DSSYNC_STATE": str(folder / "state")}

    def testbed(*arguments):
        return subprocess.run([TOOL, "testbed", *arguments], cwd=ROOT, env=environment, capture_output=True, encoding="utf-8",
                              timeout=30)

    result = testbed("up", "--topology", file)
    testbed("down", "--all")
    if "cannot emulate" in result.stderr:
        pytest.skip(result.stderr.strip())


@pytest.fixture
def dssync():
    """Runs the tool from the root of the repository and returns the finished process, with text in stdout and stderr."""

    def run(*arguments, **environment):
        command = [TOOL, *map(str, arguments)]
        return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT | environment, capture_output=True, encoding="utf-8", timeout=120)

    return run


@pytest.fixture
def plan(dssync):
    """`dssync plan` that must succeed; returns its stdout."""

    def run(*arguments, **environment):
        result = dssync("plan", *arguments, **environment)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


@pytest.fixture
def refusal(dssync):
    """`dssync plan` that must refuse its input: status 2, nothing on stdout, one line on stderr, which is returned."""

    def run(*arguments):
        result = dssync("plan", *arguments)
        assert result.returncode == 2, result.stderr
        assert result.stdout == ""
        assert result.stderr.startswith("dssync plan: ") and result.stderr.count("\n") == 1, result.stderr
        return result.stderr.strip()

    return run
