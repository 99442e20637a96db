"""A loop with accelerate, accumulated gradients and clipping: the model is not prepared, which would wrap it."""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

import dssync
from task import TOPOLOGY, check_equal, data, model

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
set_seed(3)
net = model()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.02)
loader = torch.utils.data.DataLoader(data(), batch_size=16, shuffle=True)
optimizer, loader = accelerator.prepare(optimizer, loader)
sync = dssync.DivideShuffle(net, optimizer, topology=TOPOLOGY, attach=True)
losses = []
for _ in range(4):
    for inputs, labels in loader:
        with accelerator.accumulate(net):
            loss = torch.nn.functional.cross_entropy(net(inputs), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                sync.clip_grad_norm_(1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
sync.consolidate()
check_equal(net)
assert sync.metrics["iteration"] == len(losses) / 2 == 16, sync.metrics
assert sum(losses[-8:]) < 0.7 * sum(losses[:8]), losses
try:
    dssync.DivideShuffle(net, optimizer, topology=TOPOLOGY)
except dssync.InputError as error:
    assert "leaves out steps while gradients are accumulated" in str(error)
else:
    sys.exit("a prepared optimizer was taken without attach")
accelerator.wait_for_everyone()
