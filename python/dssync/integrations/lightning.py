"""For Lightning: a strategy that is used as "ddp" is.

    Trainer(strategy=DivideShuffleStrategy(topology="network.yaml"), ...)
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from lightning.pytorch.strategies import DDPStrategy

from ..divide_shuffle import DivideShuffle
from ..planning import AnyTopology


class DivideShuffleStrategy(DDPStrategy):
    """Processes, samplers and logging are those of DDPStrategy; gradients are not averaged, parameters are, after each step.

    The model is consolidated before it is validated, tested or saved, and at the end. gradient_clip_val clips by the norm of
    everyone's mean gradient. `sync` is the DivideShuffle, while there is one.
    """

    def __init__(self, topology: AnyTopology, synchronization: Optional[Dict[str, Any]] = None, **others: Any) -> None:
        """synchronization: options of DivideShuffle, by name. others: of DDPStrategy, as far as they are not about gradients."""
        super().__init__(**others)
        self._options: Dict[str, Any] = {"topology": topology, **(synchronization or {})}
        self.sync: Optional[DivideShuffle] = None

    def configure_ddp(self) -> None:
        """Nothing is wrapped."""

    def setup_optimizers(self, trainer: Any) -> None:
        super().setup_optimizers(trainer)
        self.sync = DivideShuffle(self.lightning_module, list(self.optimizers), attach=True, **self._options)
        self.precision_plugin.clip_grad_by_norm = self._clip

    def _clip(self, optimizer: Any, clip_val: float) -> None:
        if clip_val > 0 and self.sync is not None:
            self.sync.clip_grad_norm_(clip_val)

    def _consolidate(self) -> None:
        if self.sync is not None and self.sync.metrics["iteration"] > 0:
            self.sync.consolidate()

    def on_validation_start(self) -> None:
        self._consolidate()
        super().on_validation_start()

    def on_test_start(self) -> None:
        self._consolidate()
        super().on_test_start()

    def on_train_end(self) -> None:
        self._consolidate()
        super().on_train_end()

    def lightning_module_state_dict(self) -> Dict[str, Any]:
        self._consolidate()
        state: Dict[str, Any] = super().lightning_module_state_dict()
        return state

    def teardown(self) -> None:
        self.sync = None
        super().teardown()
