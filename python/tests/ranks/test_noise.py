"""What is done about the noise of a rank's own gradient: corrected Adam, clipping, and who is told of what is not known."""

import logging

import pytest
import torch
import torch.distributed as dist

import dssync
from helper import backward, flat, on_all_ranks, small_model

BLOCK = 64


def mean_over_ranks(tensor):
    return torch.stack(on_all_ranks(tensor)).mean(0)


def take_over(twin, model):
    """The values and gradients of the model."""
    with torch.no_grad():
        for ours, theirs in zip(twin.parameters(), model.parameters()):
            ours.copy_(theirs)
            ours.grad = theirs.grad.clone()


def corrected(parameter, state, group, ranks):
    """The formula of docs/convergence.md: where the step should have led, from where it has."""
    beta1, beta2 = group["betas"]
    count = float(state["step"])
    m = state["exp_avg"].double().flatten() / (1 - beta1**count)
    v = state["exp_avg_sq"].double().flatten() / (1 - beta2**count)
    of_mean = (1 - beta1) / (1 + beta1) * (1 + beta1**count) / (1 - beta1**count)
    moved = torch.zeros_like(m)
    for first in range(0, m.numel(), BLOCK):
        block = slice(first, first + BLOCK)
        seen = v[block].sum()
        share = ((m[block].square().sum() - of_mean * seen) / ((1 - of_mean) * seen)).clamp(0, 1) if seen > 0 else 1
        part = 1 / ranks + (1 - 1 / ranks) * share
        plain = m[block] / (v[block].sqrt() + group["eps"])
        moved[block] = plain - m[block] / ((part * v[block]).sqrt() + group["eps"])
    return parameter.detach().double() + group["lr"] * moved.view(parameter.shape)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("how", [{}, {"foreach": True}, {"fused": True}])
def test_adam_steps_as_with_everyones_noise(options, kind, how):
    if "fused" in how and int(torch.__version__.split(".")[0]) < 2:
        pytest.skip("this PyTorch has no fused Adam for CPUs")
    model, twin = small_model(), small_model()
    # The bias before BatchNorm has hardly a gradient: epsilon must be smaller still.
    rates = {"lr": 0.02, "betas": (0.8, 0.9), "weight_decay": 0.01, "eps": 1e-15}
    optimizer = kind(model.parameters(), **rates, **how)
    plain = kind(twin.parameters(), **rates)
    sync = dssync.DivideShuffle(model, optimizer, overlap=False, state="local", **{**options, "disagreement": 0})
    assert sync.noise_correction == "corrected"
    for step in range(6):
        optimizer.zero_grad()
        backward(model)
        take_over(twin, model)
        plain.step()
        wanted = [corrected(p, plain.state[p], plain.param_groups[0], dist.get_world_size()) for p in twin.parameters()]
        if step == 0:  # one gradient shows no variance
            wanted = list(twin.parameters())
        sync.step()
        assert torch.allclose(flat(model.parameters()), mean_over_ranks(flat(wanted)), rtol=0, atol=1e-4)  # roots within 0.2 %, thrice
        assert step == 0 or not torch.allclose(flat(wanted), flat(twin.parameters()), rtol=0, atol=1e-3)


def test_it_can_be_turned_off(options):
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    sync = dssync.DivideShuffle(
        model, optimizer, overlap=False, state="local", noise_correction=False, **{**options, "disagreement": 0}
    )
    assert sync.noise_correction == "off"
    twin = small_model()
    alone = torch.optim.AdamW(twin.parameters(), lr=0.02)
    backward(model)
    take_over(twin, model)
    sync.step()
    alone.step()
    assert torch.allclose(flat(model.parameters()), mean_over_ranks(flat(twin.parameters())), atol=1e-6)


def test_who_needs_no_correction_and_who_is_unknown(options, caplog):
    model = small_model()
    sgd = dssync.DivideShuffle(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)
    assert sgd.noise_correction == "not needed"

    class OwnAdam(torch.optim.Adam):
        def step(self, closure=None):
            return super().step(closure)

    for kind in (torch.optim.RMSprop, OwnAdam):
        model = small_model()
        with caplog.at_level(logging.WARNING, logger="dssync"):
            sync = dssync.DivideShuffle(model, kind(model.parameters(), lr=0.01), **options)
        assert sync.noise_correction == "unknown optimizer"
        assert kind.__name__ in caplog.text and "noise_ratio" in caplog.text


def test_clips_by_the_norm_of_the_mean_gradient(options):
    """Gradients of noise alone: everyone's mean is shorter than one rank's by the root of the number of ranks."""
    model = torch.nn.Linear(100, 50)
    sync = dssync.DivideShuffle(model, torch.optim.SGD(model.parameters(), lr=1e-6), **options)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(30):
        for p in model.parameters():
            p.grad = torch.randn(p.shape, generator=generator)
        own = flat([p.grad for p in model.parameters()]).norm().item()
        norm = sync.clip_grad_norm_(5.0)
        if step > 10:
            expected = own / dist.get_world_size() ** 0.5
            assert norm == pytest.approx(expected, rel=0.1)
            clipped = flat([p.grad for p in model.parameters()]).norm().item()
            assert clipped == pytest.approx(own * min(1, 5.0 / norm), rel=1e-4)
        sync.step()
    assert sync.metrics["noise_ratio"] == pytest.approx(dist.get_world_size(), rel=0.2)
    with pytest.raises(dssync.InputError, match="above 0"):
        sync.clip_grad_norm_(0)
