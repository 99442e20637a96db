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
from dssync._joining import _group_maker

ROOT = pathlib.Path(__file__).resolve().parents[3]


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
    tree = ast.parse((pathlib.Path(dssync.__file__).parent / "_dssync.pyi").read_text())

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


def test_command_line():
    if "DSSYNC" not in os.environ:
        pytest.skip("DSSYNC does not name the command line tool")
    command = [sys.executable, "-m", "dssync", "plan", "--topology", "examples/topologies/flat.yaml"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    golden = (ROOT / "tests/golden/plan-flat.txt").read_text()
    assert result.stdout == golden
    assert subprocess.run([*command[:3], "plan", "--nonsense"], capture_output=True).returncode == 2
