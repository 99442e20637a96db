"""How the tests of the command line run the tool: its path is in DSSYNC, the examples are those of the repository."""

import os
import pathlib
import shutil
import subprocess
import tempfile
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


NOBODY = 65534


@pytest.fixture
def as_nobody(needs_namespaces):
    """Runs the tool as a user without rights, from a folder that this user may read: `file(path)` copies a file there and returns
    its new path. Skips where the kernel does not let such a user build testbeds."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root with setpriv can become another user")
    place = pathlib.Path(tempfile.mkdtemp(prefix="dssync-test-", dir="/tmp"))
    place.chmod(0o755)
    for program in (TOOL, TOOL.parent / "dssync-torch"):
        if program.exists():
            shutil.copy(program, place)
    state = place / "state"
    state.mkdir(mode=0o700)
    os.chown(state, NOBODY, NOBODY)

    def run(*arguments, patience=30):
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", place / TOOL.name, *map(str, arguments)]
        return subprocess.run(command, cwd="/", env=ENVIRONMENT | {"DSSYNC_STATE": str(state)}, capture_output=True, encoding="utf-8",
                              timeout=patience)

    run.file = lambda path: shutil.copy(path, place)
    run.state = state
    try:
        probe = run("testbed", "up", "--topology", run.file(ROOT / "examples/topologies/two-racks.yaml"))
        if probe.returncode != 0 and "user namespace" in probe.stderr:
            pytest.skip(probe.stderr.strip())
        assert probe.returncode == 0, probe.stderr
        run("testbed", "down")
        yield run
    finally:
        run("testbed", "down", "--all")
        shutil.rmtree(place)


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
