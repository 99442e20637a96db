"""Hooks through which averages overlap computing: a module's forward pass waits for its own parameters alone.

They outlive neither their DivideShuffle nor a copy of their model: a copy (copy.deepcopy, pickle) has hooks that do nothing.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch
from torch import nn
from torch.optim import LBFGS, Optimizer


def can_step_in_parts(optimizer: Optimizer) -> bool:
    """Whether several steps, each for some of the parameters, are one step for all: so with PyTorch's own optimizers, whose
    state is per parameter. Others may count steps, or look at all gradients."""
    if getattr(optimizer, "_optimizer_step_pre_hooks", None) or getattr(optimizer, "_optimizer_step_post_hooks", None):
        return False
    for kind in type(optimizer).__mro__:
        if "step" in vars(kind):
            return kind.__module__.startswith("torch.optim.") and kind is not LBFGS
    return False


def is_being_compiled() -> bool:
    """Whether torch.compile traces: a graph cannot wait."""
    compiler = getattr(torch, "compiler", None)
    return compiler is not None and hasattr(compiler, "is_compiling") and compiler.is_compiling()


class Hook:
    """Calls a method with what it was made with, as long as there is its owner."""

    def __init__(self, method: Optional[Callable[..., None]] = None, *arguments: Any) -> None:
        self._method = weakref.WeakMethod(method) if method is not None else None
        self._arguments = arguments

    def __call__(self, *_: Any) -> None:
        if is_being_compiled() or self._method is None:
            return
        method = self._method()
        if method is not None:
            method(*self._arguments)

    def __reduce__(self) -> Tuple[type, Tuple[()]]:
        return Hook, ()


def install(
    owner: Any, model: nn.Module, before: Callable[[Sequence[torch.Tensor]], None], settle: Callable[[], None]
) -> None:
    """`before` gets the parameters that a module owns itself, before its forward pass; `settle` is called when the model's
    state is asked for. The hooks go with their owner."""
    handles: List[Any] = []
    for module in model.modules():
        own = [parameter for parameter in module.parameters(recurse=False) if parameter.requires_grad]
        if own and not isinstance(module, torch.jit.ScriptModule):  # they take no hooks
            handles.append(module.register_forward_pre_hook(Hook(before, own)))
    if not isinstance(model, torch.jit.ScriptModule):
        handles.append(model._register_state_dict_hook(Hook(settle)))
    weakref.finalize(owner, _remove, handles)


def on_forward(owner: Any, model: nn.Module, before: Callable[[], None]) -> None:
    """`before` is called before each forward pass of the whole model. The hook goes with its owner."""
    if not isinstance(model, torch.jit.ScriptModule):
        weakref.finalize(owner, _remove, [model.register_forward_pre_hook(Hook(before))])


class PassCounter:
    """Counts the backward passes of the first steps: whether gradients are accumulated."""

    WATCHED = 3  # steps

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self._counts = [0] * len(parameters)  # by parameter, in this step
        self._most: List[int] = []  # by step
        self._handles = [p.register_hook(Hook(self._count, index)) for index, p in enumerate(parameters)]

    def _count(self, index: int) -> None:
        self._counts[index] += 1

    def is_decided(self) -> bool:
        """After each step."""
        most = max(self._counts)
        self._counts = [0] * len(self._counts)
        if most > 0:
            self._most.append(most)
        if len(self._most) < self.WATCHED:
            return False
        _remove(self._handles)
        return True

    def is_one(self) -> bool:
        return max(self._most) == 1


def _remove(handles: List[Any]) -> None:
    for handle in handles:
        handle.remove()
