"""torch.amp: autocast, and GradScalers that skip steps on some ranks."""

import pytest
import torch
from torch import nn

import dssync
from helper import batch, flat, limit_of, on_all_ranks, same_on_all_ranks, small_model


class Skipping:
    """A GradScaler that skips given steps."""

    def __init__(self, skipped):
        self.skipped = skipped
        self.steps = 0

    def step(self, optimizer):
        self.steps += 1
        return None if self.steps - 1 in self.skipped else optimizer.step()


def test_autocast(options):
    model = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    for _ in range(5):
        optimizer.zero_grad()
        inputs, labels = batch()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs).float(), labels)
        loss.backward()
        sync.step()
    sync.consolidate()
    assert same_on_all_ranks(model.parameters())


@pytest.mark.parametrize("overlap", ["none", "layered", "combine"])
def test_ranks_may_skip_different_steps(options, rank, overlap):
    """Also the first ones, when the optimizer has no state yet: it is averaged once all ranks have made a step."""
    model = nn.Linear(20, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sync = dssync.DivideShuffle(model, optimizer, disagreement=limit_of(overlap, 0), state="averaged", overlap=overlap, **options)
    scaler = Skipping({0, 1, 2 + rank})
    for _ in range(12):
        optimizer.zero_grad()
        inputs, labels = batch()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        sync.step(scaler=scaler)
    sync.settle()
    momentum = flat([optimizer.state[model.weight]["momentum_buffer"]])
    assert torch.isfinite(momentum).all()
    if overlap != "combine":
        assert same_on_all_ranks([*model.parameters(), momentum])
    else:  # each rank has one step of its own that is not averaged yet
        spread = torch.stack(on_all_ranks(momentum)).std(0).mean()
        assert spread < momentum.abs().mean()


def test_grad_scaler(options, rank):
    if not hasattr(torch, "amp") or not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this PyTorch has a GradScaler for CUDA only")
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for number in range(8):
        optimizer.zero_grad()
        inputs, labels = batch()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        scaler.scale(loss * float("inf") if number == rank else loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        sync.step(scaler=scaler)
        scaler.update()
    sync.consolidate()
    assert torch.isfinite(flat(model.parameters())).all()
    assert same_on_all_ranks(model.parameters())
    assert scaler.get_scale() == 4.0
