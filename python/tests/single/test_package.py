"""The package as a whole: errors, stubs, types, the command line, what is said without a process group."""

import ast
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest
import torch

import dssync
from dssync import _dssync
from dssync._joining import OLD_TORCH, _group_maker

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = pathlib.Path(dssync.__file__).parent
with_tool = pytest.mark.skipif(
    not os.path.lexists(PACKAGE / "bin/dssync"), reason="this package was built without the command line tool")


def test_errors_are_one_family():
    assert issubclass(dssync.Error, RuntimeError)
    for error in (dssync.InputError, dssync.AgreementError, dssync.PeerError):
        assert error.__bases__ == (dssync.Error,)
        assert error.__module__ == "dssync"


def test_without_a_process_group():
    model = torch.nn.Linear(2, 2)
    network = dssync.Topology.parse("hosts: [{name: a, nic: 1Gbps}]")
    for make in (
        lambda: dssync.DivideShuffle(model, torch.optim.SGD(model.parameters(), lr=0.1), topology=network),
        lambda: dssync.DivideShuffleAverager(network),
    ):
        with pytest.raises(dssync.InputError, match=r"no process group: call torch.distributed.init_process_group\(\) first"):
            make()


def test_other_backends():
    made = []
    torch.distributed.Backend.register_backend("mine", lambda *arguments: made.append(arguments))
    _group_maker("mine", "127.0.0.1", "timeout")("store", 1, 2)
    assert made == [("store", 1, 2, "timeout")]
    with pytest.raises(dssync.InputError, match="cannot make groups of the backend mpi: only of gloo, nccl, and plain plug-ins"):
        _group_maker("mpi", "127.0.0.1", "timeout")


def test_stubs_name_what_is_there():
    tree = ast.parse((PACKAGE / "_dssync.pyi").read_text())

    def names(body):
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                yield node.name
            elif isinstance(node, ast.AnnAssign):
                yield node.target.id

    def public(names):
        return {name for name in names if not name.startswith("_")}

    assert public(names(tree.body)) == public(dir(_dssync))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not issubclass(getattr(_dssync, node.name), Exception):
            assert public(names(node.body)) == public(dir(getattr(_dssync, node.name))), node.name


def test_types():
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("there is no mypy")
    command = [sys.executable, "-m", "mypy", "--cache-dir", os.devnull]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_files():
    assert not [name for name in ("_dssync.pyi", "py.typed", "torch_version") if not (PACKAGE / name).exists()]


def test_another_pytorch_is_noticed_before_the_extension_is_loaded(tmp_path):
    package = tmp_path / "dssync"
    package.mkdir()
    for file in PACKAGE.glob("*.py"):
        (package / file.name).symlink_to(file)
    (package / "torch_version").write_text("0.4.1")  # and there is no extension
    result = subprocess.run([sys.executable, "-c", "import dssync"], env=os.environ | {"PYTHONPATH": str(tmp_path)},
                            cwd=tmp_path, capture_output=True, text=True)
    assert f"dssync was built for PyTorch 0.4.1, but {torch.__version__} is installed: install dssync again" in result.stderr


def command_line(*arguments, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "DSSYNC"} | variables
    return subprocess.run([sys.executable, "-m", "dssync", *arguments], env=environment, cwd=ROOT, capture_output=True, text=True)


@with_tool
def test_command_line_of_the_package():
    result = command_line("plan", "--topology", "examples/topologies/flat.yaml")
    assert result.returncode == 0, result.stderr
    assert result.stdout == (ROOT / "tests/golden/plan-flat.txt").read_text()
    assert command_line("plan", "--nonsense").returncode == 2


def test_command_line_that_is_named():
    assert command_line("plan", "that", DSSYNC="/bin/echo").stdout == "plan that\n"


@with_tool
@pytest.mark.parametrize("verb", ["train", "bench"])
def test_verbs_that_train(verb):
    result = command_line(verb, "--help", PATH="/nowhere")
    if OLD_TORCH:
        assert f"Usage: dssync {verb} " in result.stdout, result.stderr
    else:
        assert f"dssync {verb}: {verb} needs the program dssync-torch" in result.stderr


def test_one_process_is_enough_for_debugging(tmp_path):
    """Whatever the topology."""
    script = """
import logging, torch, dssync
logging.basicConfig(level=logging.INFO)
torch.distributed.init_process_group("gloo", init_method="file://%s", rank=0, world_size=1)
torch.manual_seed(0)
models = [torch.nn.Linear(4, 2) for _ in range(2)]
models[1].load_state_dict(models[0].state_dict())
optimizers = [torch.optim.AdamW(model.parameters(), lr=0.1) for model in models]
sync = dssync.DivideShuffle(models[0], optimizers[0], topology=dssync.Topology.flat(8), plan=dssync.plan(dssync.Topology.flat(8)))
for step in range(5):
    inputs = torch.randn(8, 4)
    for model, optimizer in zip(models, optimizers):
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
    sync.step()
    optimizers[1].step()
sync.consolidate()
assert torch.allclose(models[0].weight, models[1].weight)
print(repr(sync))
""" % (tmp_path / "store")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "DivideShuffle(one process: nothing to average)\n"
    assert "INFO:dssync:one process: nothing to average" in result.stderr
