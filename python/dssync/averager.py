"""DivideShuffleAverager: the same averages for loops that are built on torch's model averagers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Dict, Iterable, List, Optional, Union

import torch
from torch.distributed.algorithms.model_averaging.averagers import ModelAverager

from . import _dssync
from ._dssync import InputError
from ._joining import ends_with_program, join, telling_others
from .divide_shuffle import DEFAULT_TIMEOUT, engine_options
from .planning import DEFAULT_DISAGREEMENT, AnyTopology, Plan, as_topology


class DivideShuffleAverager(ModelAverager):
    """An averager for PostLocalSGDOptimizer, or to call after every step: averages parameters in changing groups.

        optimizer = PostLocalSGDOptimizer(local_optimizer, dssync.DivideShuffleAverager(topology="network.yaml"))

    It knows neither the optimizer nor its state nor the model's buffers, and does not overlap: DivideShuffle does more.
    For the first `warmup_steps` nothing is averaged, as with torch's averagers: there DistributedDataParallel averages gradients.
    """

    def __init__(
        self,
        topology: AnyTopology,
        disagreement: float = DEFAULT_DISAGREEMENT,
        warmup_steps: int = 0,
        plan: Optional[Plan] = None,
        group_limit: int = 0,
        published: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> None:
        if not torch.distributed.is_initialized():
            raise InputError("torch.distributed has no process group: call torch.distributed.init_process_group() first")
        if plan is not None and plan.replicas:
            raise InputError("exact regions need gradients, which an averager of parameters does not see: use DivideShuffle")
        super().__init__()
        self.warmup_steps = warmup_steps
        self._topology = as_topology(topology)
        self._plan = plan
        self._options = engine_options(
            overlap="none",
            disagreement_limit=disagreement, group_limit=group_limit, published=published, state="local"
        )
        self._timeout = timeout
        self._addresses: List[int] = []  # of the parameters
        self._averaging: Optional[_dssync.Averaging] = None

    def average_parameters(
        self, params: Union[Iterable[torch.nn.Parameter], Iterable[Dict[str, torch.nn.Parameter]]]
    ) -> None:
        """Averages those that are trained, given as parameters or as an optimizer's groups: always the same ones."""
        if self.step >= self.warmup_steps:
            trained = [p for p in _flattened(params) if p.requires_grad]
            if self._averaging is None:
                self._averaging = self._start(trained)
                self._addresses = [p.data_ptr() for p in trained]
            if [p.data_ptr() for p in trained] != self._addresses:
                raise InputError(
                    "the parameters are not those of the first call, or were moved or converted: make a new DivideShuffleAverager"
                )
            self._averaging.before_step()
            self._averaging.after_step()
        self.step += 1

    def _start(self, trained: List[torch.Tensor]) -> _dssync.Averaging:
        named = [(f"parameter {number}", p) for number, p in enumerate(trained)]
        local = [p.detach().clone() for p in trained]
        world, _ = join(named, self._timeout)
        with telling_others(world):
            averaging = _dssync.Averaging(
                world,
                self._topology._native,
                named,
                [],
                [],
                None,
                None,
                adam=None,
                normalizes=True,
                plan=self._plan._native if self._plan else None,
                options=self._options,
            )
        ends_with_program(averaging)
        averaging.load_state(self.step - self.warmup_steps, [])
        # The engine starts from rank 0's values, but here every rank has already made a step of its own.
        with torch.no_grad():
            for parameter, value in zip(trained, local):
                parameter.copy_(value)
        return averaging


def _flattened(params: Iterable[Any]) -> List[torch.Tensor]:
    result: List[torch.Tensor] = []
    for item in params:
        result.extend(item["params"] if isinstance(item, dict) else [item])
    return result
