"""Mistakes that would otherwise go through silently: what is not taken for a model or an optimizer, and why."""

from __future__ import annotations

import math
from typing import Any, Iterable, List, Optional, Tuple

import torch
from torch import nn
from torch.optim import Optimizer

from ._dssync import InputError
from ._optimizers import Optimizers

DDP = nn.parallel.DistributedDataParallel
_GIVES_OWN = "give DivideShuffle the optimizer that it was made of"
_REFUSED = {  # wrappers of optimizers, by the start of their module and their name
    ("torch.distributed", "ZeroRedundancyOptimizer"): "steps only a part of the parameters on each rank, and expects "
    "gradients that are everyone's: make the optimizer that it would make (optimizer_class) from model.parameters()",
    ("torch.distributed", "PostLocalSGDOptimizer"): "averages parameters itself: " + _GIVES_OWN,
    ("accelerate", "AcceleratedOptimizer"): "leaves out steps while gradients are accumulated, which would still be counted: "
    "use DivideShuffle(..., attach=True)",
    ("lightning", "LightningOptimizer"): "is Lightning's view of an optimizer: use DivideShuffle(..., attach=True)",
    ("pytorch_lightning", "LightningOptimizer"): "is Lightning's view of an optimizer: use DivideShuffle(..., attach=True)",
}
_TAKEN_APART = ("AcceleratedOptimizer", "LightningOptimizer")  # what is attached sees the steps of the optimizer inside


def check_kinds(model: Any, given: Any) -> None:
    """Before anything else is done with them."""
    several = isinstance(given, (list, tuple))
    optimizers = list(given) if several else [given]
    if isinstance(model, Optimizer) and any(isinstance(one, nn.Module) for one in optimizers):
        raise InputError("model and optimizer are swapped: expected DivideShuffle(model, optimizer, topology=...)")
    if not isinstance(model, nn.Module):
        raise InputError(f"the model is of type {type(model).__name__}: expected a torch.nn.Module")
    if not optimizers:
        raise InputError("the list of optimizers is empty")
    for one in optimizers:
        if not isinstance(one, Optimizer):
            raise InputError(f"the optimizer is of type {type(one).__name__}: expected a torch.optim.Optimizer, or a list of them")


def own_optimizers(given: Any, attach: bool) -> Any:
    """Those that make steps. Refuses what would go wrong around them."""
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    found = []
    for one in several:
        while attach and type(one).__name__ in _TAKEN_APART and isinstance(getattr(one, "optimizer", None), Optimizer):
            one = one.optimizer
        for kind in type(one).__mro__:
            for (module, name), why in _REFUSED.items():
                if kind.__name__ == name and kind.__module__.startswith(module):
                    raise InputError(f"{name} {why}")
        found.append(one)
    return found if isinstance(given, (list, tuple)) else found[0]


def check_model(model: nn.Module) -> None:
    for name, module in model.named_modules():
        if isinstance(module, DDP):
            what = f"'{name}', a part of the model," if name else "the model"
            raise InputError(f"{what} is wrapped in DistributedDataParallel, which averages gradients: give the model itself")
    for name, parameter in model.named_parameters():
        if type(parameter).__name__ == "DTensor" or hasattr(parameter, "_local_tensor"):
            raise InputError(f"'{name}' is sharded (FSDP or tensor parallelism): dssync averages whole replicas only")
    if any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules()):
        raise InputError("the model is sharded by FullyShardedDataParallel: dssync averages whole replicas only")
    if not any(p.requires_grad for p in model.parameters()):
        raise InputError("the model has no parameter that is trained (requires_grad)")


def check_forward() -> None:
    """In the model's forward pass."""
    if getattr(DDP, "_active_ddp_module", None) is not None:
        raise InputError(
            "the model is called inside DistributedDataParallel, which averages its gradients as well: call the model itself"
        )


def check_optimizers(model: nn.Module, optimizers: Optimizers) -> None:
    held = [id(p) for p in optimizers.held() if p.requires_grad]
    missing = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in held]
    if missing:
        holds = "the optimizer does not hold" if len(optimizers) == 1 else "none of the optimizers holds"
        raise InputError(f"{holds} {_some(missing)} of the model: make it from model.parameters(), give all optimizers as a list, "
                         "or freeze what is not to be trained (requires_grad_(False))")
    strangers = {*held} - {id(p) for p in model.parameters()}
    if strangers:
        raise InputError(f"the optimizer holds {len(strangers)} parameters that the model does not have")
    twice = {key for key in held if held.count(key) > 1} if len(optimizers) > 1 else set()
    shared = [name for name, p in model.named_parameters() if id(p) in twice]
    if shared:
        raise InputError(f"several optimizers hold {_some(shared)}")


def not_finite(parameters: Iterable[Tuple[str, torch.Tensor]]) -> Optional[str]:
    """The name of a parameter whose gradient has a value that is infinite or no number."""
    named = [(name, p.grad) for name, p in parameters if p.grad is not None and not p.grad.is_sparse]
    if not named:
        return None
    norms = torch._foreach_norm([gradient for _, gradient in named])
    if math.isfinite(float(torch.stack([norm.float() for norm in norms]).sum())):
        return None
    return next((name for name, gradient in named if not torch.isfinite(gradient).all()), None)


def _some(names: List[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more parameters"
