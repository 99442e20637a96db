"""attach=True: whoever calls optimizer.step() synchronises, as sync.step() would, to the bit."""

import logging

import pytest
import torch
from torch import nn

import dssync
from helper import IS_OLD, backward, batch, flat, on_all_ranks, same_on_all_ranks, small_model

STEPS = 12
OPTIMIZERS = {
    "sgd": lambda model: torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
    "adamw": lambda model: torch.optim.AdamW(model.parameters(), lr=0.01),
    "two": lambda model: [torch.optim.SGD(model[0].parameters(), lr=0.05, momentum=0.9),
                          torch.optim.AdamW([*model[1].parameters(), *model[3].parameters()], lr=0.01)],
}
needs_hooks = pytest.mark.skipif(IS_OLD, reason="optimizers of this PyTorch take no hooks")


def trained(options, make_optimizer, attach, rank, clips=False, **others):
    """The parameters after some steps."""
    torch.manual_seed(7)
    model = small_model()
    torch.manual_seed(100 + rank)
    optimizer = make_optimizer(model)
    several = optimizer if isinstance(optimizer, list) else [optimizer]
    sync = dssync.DivideShuffle(model, optimizer, attach=attach, **options, **others)
    for _ in range(STEPS):
        for one in several:
            one.zero_grad()
        backward(model)
        if clips:
            sync.clip_grad_norm_(0.5)
        for one in several if attach else [sync]:
            one.step()
    sync.settle()
    assert sync.metrics["iteration"] == STEPS
    return flat(model.parameters())


@needs_hooks
@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("overlap", ["none", "layered"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_the_bits_are_those_of_sync_step(options, rank, kind, overlap, clips):
    own, called = (trained(options, OPTIMIZERS[kind], attach, rank, clips, overlap=overlap) for attach in (True, False))
    assert torch.equal(own, called)


@needs_hooks
def test_closures(options, rank):
    def trained_with(attach):
        torch.manual_seed(7)
        model = small_model()
        torch.manual_seed(100 + rank)
        optimizer = OPTIMIZERS["adamw"](model)
        sync = dssync.DivideShuffle(model, optimizer, attach=attach, overlap="none", **options)

        def closure():
            optimizer.zero_grad()
            return backward(model)

        losses = [(optimizer if attach else sync).step(closure) for _ in range(STEPS)]
        return torch.cat([flat(model.parameters()), torch.tensor(losses).double()])

    assert torch.equal(trained_with(True), trained_with(False))


@needs_hooks
def test_lbfgs_runs_its_closure_itself(options):
    """All ranks have the same examples, so that averages change nothing: it is as with one process."""
    def trained(attach):
        torch.manual_seed(7)
        model = nn.Linear(20, 3)
        inputs, labels = batch(64)
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
        sync = dssync.DivideShuffle(model, optimizer, attach=True, **options) if attach else None

        def closure():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            return loss

        losses = [optimizer.step(closure).item() for _ in range(5)]
        assert losses[-1] < losses[0]
        if sync:
            sync.consolidate()
            assert sync.metrics["iteration"] == 5
        return flat(model.parameters())

    assert torch.allclose(trained(True), trained(False), atol=1e-5)


@needs_hooks
@pytest.mark.parametrize("unscales", [False, True])
@pytest.mark.parametrize("fused", [False, True])
def test_grad_scalers_skip_steps_of_single_ranks(options, rank, unscales, fused):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, **({"fused": True} if fused else {}))
    sync = dssync.DivideShuffle(model, optimizer, attach=True, **options)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for number in range(8):
        optimizer.zero_grad()
        inputs, labels = batch()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        before = flat(model.parameters())
        scaler.scale(loss * float("inf") if number == rank else loss).backward()
        if unscales:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        assert torch.isfinite(flat(model.parameters())).all()
        assert (flat(model.parameters()) - before).abs().max() < 1  # gradients are not those that were scaled
    sync.consolidate()
    assert sync.metrics["iteration"] == 8
    assert same_on_all_ranks(model.parameters())
    assert scaler.get_scale() == 4.0


@needs_hooks
def test_unscaled_steps_are_those_without_a_scaler(options, rank):
    def with_scaler(is_enabled):
        torch.manual_seed(7)
        model = small_model()
        torch.manual_seed(100 + rank)
        optimizer = OPTIMIZERS["sgd"](model)
        sync = dssync.DivideShuffle(model, optimizer, attach=True, **options)
        scaler = torch.amp.GradScaler("cpu", init_scale=16.0, enabled=is_enabled)
        for _ in range(STEPS):
            optimizer.zero_grad()
            inputs, labels = batch()
            scaler.scale(nn.functional.cross_entropy(model(inputs), labels)).backward()
            scaler.step(optimizer)
            scaler.update()
        sync.settle()
        return flat(model.parameters())

    assert torch.equal(with_scaler(True), with_scaler(False))  # a power of two


@needs_hooks
def test_accumulated_gradients_and_schedulers(options):
    model = small_model()
    optimizer = OPTIMIZERS["adamw"](model)
    sync = dssync.DivideShuffle(model, optimizer, attach=True, disagreement=0, **options)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(4):
        for _ in range(2):
            backward(model)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    sync.settle()
    assert sync.metrics["iteration"] == 4
    spread = torch.stack(on_all_ranks(flat(model.parameters()))).std(0)
    assert spread.max() < 1e-6


@needs_hooks
def test_mistakes_are_named(options):
    model = small_model()
    first, second = OPTIMIZERS["two"](model)
    sync = dssync.DivideShuffle(model, [first, second], attach=True, **options)
    with pytest.raises(dssync.InputError, match=r"optimizer.step\(\) synchronises, and sync.step\(\) would be a second step"):
        sync.step()
    backward(model)
    first.step()
    with pytest.raises(dssync.InputError, match="SGD made a second step before AdamW made its first"):
        first.step()
    second.step()
    with pytest.raises(dssync.InputError, match="called twice for one backward pass"):
        first.step()


@needs_hooks
def test_another_optimizer_steps(options):
    model = small_model()
    sync = dssync.DivideShuffle(model, OPTIMIZERS["sgd"](model), attach=True, **options)
    other = OPTIMIZERS["sgd"](model)
    backward(model)
    other.step()
    with pytest.raises(dssync.InputError, match="attached to made no step: does another one step"):
        sync.consolidate()


@needs_hooks
def test_hooks_go_with_their_owner(options):
    model = small_model()
    optimizer = OPTIMIZERS["sgd"](model)
    first = dssync.DivideShuffle(model, optimizer, attach=True, **options)
    second = dssync.DivideShuffle(model, optimizer, attach=True, **options)  # takes over
    backward(model)
    optimizer.step()
    assert (first.metrics["iteration"], second.metrics["iteration"]) == (0, 1)
    del first, second
    assert not optimizer._optimizer_step_pre_hooks
    assert not hasattr(optimizer, "_step_supports_amp_scaling")
    backward(model)
    optimizer.step()


@pytest.mark.skipif(not IS_OLD, reason="optimizers of this PyTorch take hooks")
def test_old_pytorch(options):
    model = small_model()
    with pytest.raises(dssync.InputError, match="attach needs the hooks of optimizers that PyTorch 2 has"):
        dssync.DivideShuffle(model, OPTIMIZERS["sgd"](model), attach=True, **options)


def test_several_optimizers(options, caplog):
    """Also Muon for matrices, where there is one."""
    model = nn.Sequential(nn.Linear(20, 16, bias=False), nn.ReLU(), nn.Linear(16, 3))
    muon = getattr(torch.optim, "Muon", None)
    matrices = muon(model[0].parameters(), lr=0.01) if muon else torch.optim.SGD(model[0].parameters(), lr=0.1, momentum=0.9)
    with caplog.at_level(logging.WARNING, "dssync"):
        sync = dssync.DivideShuffle(model, [matrices, torch.optim.AdamW(model[2].parameters(), lr=0.01)], **options)
    assert [record.getMessage().split(":")[0] for record in caplog.records] == (["Muon"] if muon else [])
    losses = []
    for _ in range(40):
        model.zero_grad()
        losses.append(backward(model))
        sync.step()
    sync.consolidate(state=True)
    assert sum(losses[-5:]) < sum(losses[:5])
    assert same_on_all_ranks(model.parameters())
    assert same_on_all_ranks([matrices.state[model[0].weight]["momentum_buffer"]])
