"""Divide-and-shuffle in a training script: torchrun --nproc-per-node 4 python/examples/smallest.py"""

import torch
import torch.distributed as dist
import dssync

dist.init_process_group("gloo")
model = torch.nn.Linear(20, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
sync = dssync.DivideShuffle(model, optimizer, topology="python/examples/network.yaml")
for iteration in range(100):
    inputs = torch.randn(32, 20)  # this rank's batch
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    sync.step()
print(f"rank {dist.get_rank()}: loss {loss.item():.3f}")
