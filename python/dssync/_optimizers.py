"""The optimizer of a model, or several that share its parameters, as one."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence, Tuple, Union

import torch
from torch.optim import Optimizer

from ._adam import is_adam, normalizes

OneOrMore = Union[Optimizer, Sequence[Optimizer]]


class Optimizers:
    """Each parameter belongs to one of them."""

    def __init__(self, given: OneOrMore) -> None:
        self.all: List[Optimizer] = list(given) if isinstance(given, (list, tuple)) else [given]  # type: ignore[list-item]

    def __iter__(self) -> Iterator[Optimizer]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def held(self) -> List[torch.Tensor]:
        return [p for optimizer in self.all for p in held_by(optimizer)]

    def state_of(self, parameter: torch.Tensor) -> Dict[str, Any]:
        for optimizer in self.all:
            if parameter in optimizer.state:
                found: Dict[str, Any] = optimizer.state[parameter]
                return found
        return {}

    def states(self) -> List[Any]:
        """load_state_dict() replaces these objects."""
        return [optimizer.state for optimizer in self.all]

    def settings(self) -> List[Any]:
        """Numbers that a step depends on."""
        groups = [group for optimizer in self.all for group in optimizer.param_groups]
        return [value for group in groups for value in group.values() if isinstance(value, (int, float, tuple))]

    def step(self) -> Any:
        """What the last one returns."""
        result = None
        for optimizer in self.all:
            result = optimizer.step()
        return result

    @property
    def has_adam(self) -> bool:
        return any(is_adam(optimizer) for optimizer in self.all)

    @property
    def normalizing(self) -> List[str]:
        """Names of those that may divide by the size of gradients in a way that is not known."""
        return [type(one).__name__ for one in self.all if normalizes(one) and not is_adam(one)]

    @property
    def is_mixed(self) -> bool:
        """Adam for some parameters, something else for others."""
        return self.has_adam and not all(is_adam(optimizer) for optimizer in self.all)


def held_by(optimizer: Optimizer) -> List[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def state_kinds(state: Dict[str, Any], parameter: torch.Tensor) -> Tuple[Dict[str, torch.Tensor], List[str]]:
    """What an optimizer keeps of a parameter: tensors of its shape, which can be averaged with it, and names of the rest.
    Single numbers, such as the count of steps, are neither."""
    alike, others = {}, []
    for kind, value in state.items():
        if torch.is_tensor(value) and value.shape == parameter.shape and kind != "step":
            alike[kind] = value
        elif isinstance(value, (list, tuple)) or (torch.is_tensor(value) and value.numel() > 1):
            others.append(kind)
    return alike, others
