"""What the tests share: a task to learn, and comparing tensors between ranks."""

import torch
import torch.distributed as dist
from torch import nn

IS_OLD = int(torch.__version__.split(".")[0]) < 2


def small_model():
    return nn.Sequential(nn.Linear(20, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


def batch(examples=32):
    inputs = torch.randn(examples, 20)
    return inputs, inputs[:, :3].argmax(1)


def backward(model):
    inputs, labels = batch()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    return loss.item()


def train(model, optimizer, sync, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = backward(model)
        sync.step()
    return loss


def limit_of(overlap, limit=0.5):
    """A limit on S that leaves the plan as much as in line: averages that combine miss a step, which counts."""
    return limit + (1 - 1 / dist.get_world_size() if overlap == "combine" else 0)


def flat(tensors):
    return torch.cat([tensor.detach().reshape(-1).double() for tensor in tensors])


def on_all_ranks(tensor):
    """The same tensor of every rank."""
    gathered = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, tensor)
    return gathered


def same_on_all_ranks(tensors):
    first, *others = on_all_ranks(flat(tensors))
    return all(torch.equal(first, other) for other in others)
