"""What the engine has to know of an Adam optimizer to correct its steps: its moments once, its rates in every step."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple, Type

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
    """Tells the engine which steps an optimizer makes. With amsgrad a step divides by something else: such groups are left out."""

    def __init__(self, optimizer: Optimizer, parameters: List[Tuple[str, torch.Tensor]]) -> None:
        self.table = _dssync.AdamTable()
        self._optimizer = optimizer
        self._index = {parameter: index for index, (_, parameter) in enumerate(parameters)}
        self._state: Optional[Any] = None  # whose tensors are bound
        self._bound = 0  # parameters that had a state then

    def refresh(self) -> None:
        """After a step: its rates, and tensors that are new."""
        state = self._optimizer.state
        if self._state is not state or self._bound != len(state):
            self._bind()
        for number, group in enumerate(self._optimizer.param_groups):
            beta1, beta2 = group["betas"]
            self.table.set_rates(number, float(group["lr"]), float(beta1), float(beta2), float(group["eps"]))

    def _bind(self) -> None:
        self._state, self._bound = self._optimizer.state, len(self._optimizer.state)
        self.table.clear()
        for number, group in enumerate(self._optimizer.param_groups):
            if group.get("amsgrad"):
                continue
            for parameter in group["params"]:
                made = self._state.get(parameter, {})
                if parameter not in self._index or "exp_avg" not in made:
                    continue
                self.table.bind(
                    self._index[parameter], parameter, made["exp_avg"], made["exp_avg_sq"], made["step"], number
                )
