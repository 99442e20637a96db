"""Divide-and-shuffle synchronization for data-parallel training: the engine of dssync in PyTorch scripts.

Start with DivideShuffle. docs/pytorch.md explains how it fits beside DistributedDataParallel.
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
