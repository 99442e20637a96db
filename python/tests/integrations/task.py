"""What the scripts of this folder share: something to learn, and whether all ranks have learned the same."""

import torch
import torch.distributed as dist
from torch import nn

TOPOLOGY = {"defaults": {"nic": "100Mbps"}, "hosts": [{"name": "h[0-1]"}]}


def data(examples=256):
    inputs = torch.randn(examples, 20, generator=torch.Generator().manual_seed(1))
    return torch.utils.data.TensorDataset(inputs, inputs[:, :3].argmax(1))


def model():
    return nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3))


def check_equal(module):
    own = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
    all_ = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(all_, own)
    assert all(torch.equal(own, other) for other in all_)
