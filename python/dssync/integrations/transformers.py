"""For Hugging Face's Trainer: a Trainer that averages parameters instead of wrapping the model in DistributedDataParallel.

    trainer = DivideShuffleTrainer(model=model, args=arguments, train_dataset=data, topology="network.yaml")

Trainers of one's own: class MyTrainer(DivideShuffleMixin, SomeTrainer).
"""

from __future__ import annotations

import functools
from typing import Any, Dict, Optional

import torch
from transformers import Trainer, TrainerCallback

from ..divide_shuffle import DivideShuffle
from ..planning import AnyTopology


class DivideShuffleMixin:
    """The model is consolidated before it is evaluated or saved, and at the end. max_grad_norm clips by the norm of everyone's mean
    gradient. `sync` is the DivideShuffle, once training has begun."""

    accelerator: Any

    def __init__(
        self, *others: Any, topology: AnyTopology, synchronization: Optional[Dict[str, Any]] = None, **named: Any
    ) -> None:
        """synchronization: options of DivideShuffle, by name. The others are the Trainer's."""
        self.sync: Optional[DivideShuffle] = None
        self._options: Dict[str, Any] = {"topology": topology, **(synchronization or {})}
        self._consolidated = 0.0  # after so many steps
        super().__init__(*others, **named)
        self.add_callback(_Callback(self))  # type: ignore[attr-defined]

    def create_accelerator_and_postprocess(self) -> None:
        """The model is prepared as for evaluation: placed and cast, but not wrapped."""
        super().create_accelerator_and_postprocess()  # type: ignore[misc]
        self.accelerator.prepare_model = functools.partial(self.accelerator.prepare_model, evaluation_mode=True)
        self.accelerator.clip_grad_norm_ = self._clip

    def start(self, model: torch.nn.Module, optimizer: Any) -> None:
        self.sync = DivideShuffle(model, optimizer, attach=True, **self._options)
        self._consolidated = 0.0

    def consolidate(self) -> None:
        """Collective, where there were steps since the last time."""
        if self.sync is not None and self.sync.metrics["iteration"] > self._consolidated:
            self.sync.consolidate()
            self._consolidated = self.sync.metrics["iteration"]

    def _clip(self, parameters: Any, max_norm: float, norm_type: float = 2) -> torch.Tensor:
        assert self.sync is not None
        return torch.tensor(self.sync.clip_grad_norm_(max_norm))

    def evaluate(self, *others: Any, **named: Any) -> Any:
        self.consolidate()
        return super().evaluate(*others, **named)  # type: ignore[misc]

    def save_model(self, *others: Any, **named: Any) -> Any:
        self.consolidate()
        return super().save_model(*others, **named)  # type: ignore[misc]


class _Callback(TrainerCallback):
    def __init__(self, trainer: DivideShuffleMixin) -> None:
        self._trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._trainer.start(others["model"], others["optimizer"])

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._trainer.consolidate()


class DivideShuffleTrainer(DivideShuffleMixin, Trainer):
    pass
