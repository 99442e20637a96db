"""Divide-and-shuffle synchronization for data-parallel training: the engine of dssync in PyTorch scripts.

In a script that torchrun starts, instead of DistributedDataParallel:

    sync = dssync.DivideShuffle(model, optimizer, topology="network.yaml", attach=True)
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss_function(model(inputs), labels).backward()
        sync.clip_grad_norm_(1.0)  # where gradients are clipped
        optimizer.step()
    sync.consolidate()             # one model on all ranks: before evaluating and saving

    DivideShuffle       keeps the models of all ranks together; its options are in help(dssync.DivideShuffle.__init__)
    Topology            the network: of a file, of a dict, or Topology.flat(8, nic="10Gbps")
    plan                what to expect of a network: who averages with whom, how long that takes
    DivideShuffleAverager   for loops that are built on torch's model averagers
    Error               what is raised; InputError, AgreementError and PeerError are of its kind

The logger "dssync" says in a line of level INFO what is planned. docs/pytorch.md says more.
"""

import pathlib

import torch

# Before the extension is loaded: with another PyTorch that can fail in ways that say nothing.
_built_for = (pathlib.Path(__file__).parent / "torch_version").read_text().strip()
if _built_for.split(".")[:2] != torch.__version__.split(".")[:2]:
    raise ImportError(f"dssync was built for PyTorch {_built_for}, but {torch.__version__} is installed: install dssync again")

from . import _dssync
from ._dssync import AgreementError, Error, InputError, PeerError
from .averager import DivideShuffleAverager
from .divide_shuffle import DivideShuffle
from .planning import Cost, Link, Mixing, Plan, Round, Topology, plan

__version__ = _dssync.version
__all__ = [
    "AgreementError",
    "Cost",
    "DivideShuffle",
    "DivideShuffleAverager",
    "Error",
    "InputError",
    "Link",
    "Mixing",
    "PeerError",
    "Plan",
    "Round",
    "Topology",
    "plan",
]

for _error in (Error, InputError, AgreementError, PeerError):
    _error.__module__ = __name__
