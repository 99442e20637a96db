"""Lightning's Trainer with the strategy: accumulated gradients, clipping, validation, a checkpoint, and going on from it."""

import logging
import sys
import warnings

import lightning
import torch
import torch.distributed as dist

from dssync.integrations.lightning import DivideShuffleStrategy
from task import TOPOLOGY, check_equal, data, model

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = model()
        self.losses = []

    def training_step(self, batch):
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch):
        check_equal(self)  # all ranks evaluate the same model

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.02)


def trainer(epochs):
    strategy = DivideShuffleStrategy(TOPOLOGY, process_group_backend="gloo")
    return lightning.Trainer(strategy=strategy, accelerator="cpu", devices=2, max_epochs=epochs, accumulate_grad_batches=2,
                             gradient_clip_val=1.0, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                             enable_model_summary=False, num_sanity_val_steps=1)


loaders = [torch.utils.data.DataLoader(data(), batch_size=16, shuffle=shuffle) for shuffle in (True, False)]
first, module = trainer(3), Module()
first.fit(module, *loaders)
check_equal(module)
assert first.strategy.sync is None and first.global_step == 12, first.global_step
assert sum(module.losses[-8:]) < 0.8 * sum(module.losses[:8]), module.losses
first.save_checkpoint(sys.argv[1])
again, resumed = trainer(4), Module()
again.fit(resumed, *loaders, ckpt_path=sys.argv[1])
check_equal(resumed)
assert again.global_step == 16 and len(resumed.losses) == 8
assert sum(resumed.losses) < sum(module.losses[:8])
dist.barrier()
