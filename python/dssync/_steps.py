"""Hooks on the steps of optimizers: to synchronise whoever calls step(), or to notice steps that nobody synchronises.

They need PyTorch 2. They do not keep their owner, and go with it.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from torch.optim import LBFGS, Optimizer

from ._dssync import InputError
from ._optimizers import Optimizers, held_by

HAS_HOOKS = hasattr(Optimizer, "register_step_pre_hook")
_handles: "weakref.WeakKeyDictionary[Optimizer, List[Any]]" = weakref.WeakKeyDictionary()


def release(optimizer: Optional[Optimizer], handles: Optional[List[Any]] = None) -> None:
    """Removes these hooks, or those of whichever DivideShuffle has some: the newest one counts."""
    if optimizer is None or (handles is not None and _handles.get(optimizer) is not handles):
        return
    for handle in _handles.pop(optimizer, []):
        handle.remove()
    if optimizer.__dict__.get("_step_supports_amp_scaling") is _TAUGHT:
        del optimizer._step_supports_amp_scaling  # type: ignore[attr-defined]


class _Taught:
    """True, but ours: a GradScaler calls step() even where it would skip it, and says why."""

    def __bool__(self) -> bool:
        return True


_TAUGHT = _Taught()


class StepHooks:
    """Calls `begin` before the first and `end` after the last optimizer's step of an iteration.

    begin(is_final) returns whether steps are still to be made; `is_final`: gradients are what the step uses.
    Without `attach` a step outside of making() is refused: nobody would synchronise it.
    """

    def __init__(
        self, owner: Any, optimizers: Optimizers, attach: bool, begin: Callable[[bool], bool], end: Callable[[], None]
    ) -> None:
        if attach and not HAS_HOOKS:
            raise InputError(f"attach needs the hooks of optimizers that PyTorch 2 has, but this is {torch.__version__}: call sync.step()")
        self.is_attached = attach
        self._optimizers = optimizers
        self._begin, self._end = weakref.WeakMethod(begin), weakref.WeakMethod(end)
        self._is_making = False
        self._stepped: List[Optimizer] = []  # in this iteration
        self._is_wanted = True
        self._hidden: List[Tuple[torch.Tensor, torch.Tensor]] = []  # gradients that no step shall see
        self._last: Optional[List[Any]] = None  # gradients as the last step left them
        if not HAS_HOOKS:
            return
        for optimizer in optimizers:
            hooked: Any = optimizer  # to those who know old versions of PyTorch only, too
            _handles[optimizer] = [hooked.register_step_pre_hook(self._before), hooked.register_step_post_hook(self._after)]
            if attach and not getattr(optimizer, "_step_supports_amp_scaling", False):
                optimizer._step_supports_amp_scaling = _TAUGHT  # type: ignore[attr-defined]
            weakref.finalize(owner, _release_weakly, weakref.ref(optimizer), _handles[optimizer])

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """Steps within are the engine's."""
        before, self._is_making = self._is_making, True
        try:
            yield
        finally:
            self._is_making = before

    def _before(self, optimizer: Optimizer, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        begin = self._begin()
        if self._is_making or begin is None:
            return None
        if not self.is_attached:
            raise InputError(
                "optimizer.step() was called beside DivideShuffle, so that nobody averages what it does: call sync.step() instead, "
                "or make DivideShuffle(..., attach=True)"
            )
        self._check_order(optimizer)
        changed, is_final = self._run_closure(optimizer, args, kwargs)
        if is_final:
            self._check_doubled()
        is_scaled = optimizer.__dict__.get("found_inf") is not None
        if is_scaled and self._has_overflow(optimizer):
            self._hide(optimizer)
        if not self._stepped:
            self._is_wanted = begin(is_final and not is_scaled)
        if not self._is_wanted:
            self._hide(optimizer)
        return changed

    def _after(self, optimizer: Optimizer, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        end = self._end()
        if self._is_making or end is None or not self.is_attached:
            return
        for parameter, gradient in self._hidden:
            parameter.grad = gradient
        self._hidden = []
        self._stepped.append(optimizer)
        if len(self._stepped) == len(self._optimizers):
            self._stepped = []
            end()
            self._last = self._gradients()

    def _check_order(self, optimizer: Optimizer) -> None:
        if optimizer not in self._stepped:
            return
        waiting = [type(one).__name__ for one in self._optimizers if one not in self._stepped]
        raise InputError(
            f"{type(optimizer).__name__} made a second step before {', '.join(waiting)} made its first: in every iteration each "
            "optimizer steps once"
        )

    def _run_closure(self, optimizer: Optimizer, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Any, bool]:
        """Runs it now, so that gradients are there before the step; gives the step its result. Except for LBFGS, which runs it
        several times. Returns what to call the step with instead, and whether gradients are final."""
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            return None, True
        if len(self._optimizers) > 1:
            raise InputError("a closure belongs to one optimizer, and there are several: call it first, then their steps")
        if isinstance(optimizer, LBFGS):
            return None, False
        with torch.enable_grad():
            loss = closure()
        others = {name: value for name, value in kwargs.items() if name != "closure"}
        return ((args[0], lambda: loss, *args[2:]), others), True

    def _has_overflow(self, optimizer: Any) -> bool:
        """Does what a GradScaler leaves to optimizers that know of it; also for those that would, because PyTorch's fused ones
        do not start their momentum well where the first step is skipped (as of 2.13)."""
        scale, found = optimizer.grad_scale, bool(optimizer.found_inf.item())
        optimizer.grad_scale = optimizer.found_inf = None
        if scale is not None and not found:
            factor = 1 / scale.double().item()
            with torch.no_grad():
                for parameter in held_by(optimizer):
                    if parameter.grad is not None:
                        parameter.grad.mul_(factor)
        return found

    def _hide(self, optimizer: Optimizer) -> None:
        """Optimizers skip parameters without a gradient."""
        for parameter in held_by(optimizer):
            if parameter.grad is not None:
                self._hidden.append((parameter, parameter.grad))
                parameter.grad = None

    def _gradients(self) -> List[Any]:
        found = [p.grad for p in self._optimizers.held() if p.grad is not None]
        return [(weakref.ref(gradient), gradient._version) for gradient in found]

    def _check_doubled(self) -> None:
        if self._stepped or not self._last:
            return
        now = [p.grad for p in self._optimizers.held() if p.grad is not None]
        last, self._last = self._last, None
        if len(now) == len(last) and all(g is ref() and g._version == version for g, (ref, version) in zip(now, last)):
            raise InputError("optimizer.step() was called twice for one backward pass: gradients are those of the step before")


def _release_weakly(optimizer: "weakref.ref[Optimizer]", handles: List[Any]) -> None:
    release(optimizer(), handles)
