"""What the engine has to know of Adam optimizers to correct their steps: their moments once, their rates in every step."""

from __future__ import annotations

from typing import Any, Iterable, List, Tuple, Type

import torch
from torch.optim import SGD, Adam, AdamW, Optimizer

from . import _dssync


def is_adam(optimizer: Optimizer) -> bool:
    return _steps_as(optimizer, (Adam, AdamW))


def normalizes(optimizer: Optimizer) -> bool:
    """Whether it may divide by the size of the gradients that it sees."""
    return not _steps_as(optimizer, (SGD,))


def _steps_as(optimizer: Optimizer, kinds: Tuple[Type[Optimizer], ...]) -> bool:
    """Whether it is one of these, with the step that PyTorch wrote for it."""
    for kind in type(optimizer).__mro__:
        if kind in kinds:
            return True
        if "step" in vars(kind):
            return False
    return False


class AdamSteps:
    """Tells the engine which steps are made. With amsgrad a step divides by something else: such groups are left out, as are
    optimizers that are no Adam."""

    def __init__(self, optimizers: Iterable[Optimizer], parameters: List[Tuple[str, torch.Tensor]]) -> None:
        self.table = _dssync.AdamTable()
        self._optimizers = [optimizer for optimizer in optimizers if is_adam(optimizer)]
        self._index = {parameter: index for index, (_, parameter) in enumerate(parameters)}
        self._bound: List[Tuple[Any, int]] = []  # states whose tensors are bound, and how many parameters had one then

    def refresh(self) -> None:
        """After a step: its rates, and tensors that are new."""
        now = [(optimizer.state, len(optimizer.state)) for optimizer in self._optimizers]
        if len(now) != len(self._bound) or any(a is not c or b != d for (a, b), (c, d) in zip(now, self._bound)):
            self._bind()
            self._bound = now
        for number, (_, group) in enumerate(self._groups()):
            beta1, beta2 = group["betas"]
            self.table.set_rates(number, float(group["lr"]), float(beta1), float(beta2), float(group["eps"]))

    def _groups(self) -> List[Tuple[Optimizer, Any]]:
        return [(optimizer, group) for optimizer in self._optimizers for group in optimizer.param_groups]

    def _bind(self) -> None:
        self.table.clear()
        for number, (optimizer, group) in enumerate(self._groups()):
            if group.get("amsgrad"):
                continue
            for parameter in group["params"]:
                made = optimizer.state.get(parameter, {})
                if parameter not in self._index or "exp_avg" not in made:
                    continue
                self.table.bind(
                    self._index[parameter], parameter, made["exp_avg"], made["exp_avg_sq"], made["step"], number
                )
