"""overlap="layered": the bits of overlap="none", whatever a program does with its modules and gradients."""

import copy
import logging
import pickle

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import dssync
from helper import IS_OLD, batch, flat

STEPS = 50
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}


class Net(nn.Module):
    """Enough layers for several buckets on the slow network of these tests."""

    def __init__(self, width=400):
        super().__init__()
        self.inside = nn.Linear(20, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(3))
        self.outside = nn.Linear(width, 3)

    def forward(self, inputs):
        values = self.inside(inputs)
        for block in self.blocks:
            values = self.block(block, values)
        return self.scores(values)

    def block(self, block, values):
        return block(values)

    def scores(self, values):
        return self.outside(values)


class Checkpointed(Net):
    reentrant = False

    def block(self, block, values):
        return checkpoint(block, values, use_reentrant=self.reentrant)


class CheckpointedReentrant(Checkpointed):
    reentrant = True


class CheckpointedTwice(CheckpointedReentrant):
    """The gradient of a block comes in two parts."""

    def block(self, block, values):
        return super().block(block, super().block(block, values))


class Tied(Net):
    """The last layer uses the weights of the first one, without calling it."""

    def scores(self, values):
        return self.outside(values) + (values @ self.inside.weight)[:, :3]


class Unused(Net):
    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(7, 7)


class Functional(Net):
    """Modules whose parameters are used without calling them: nobody can wait for these alone."""

    def scores(self, values):
        return nn.functional.linear(values, self.outside.weight, self.outside.bias)


def loss_of(model):
    inputs, labels = batch()
    return nn.functional.cross_entropy(model(inputs), labels)


def plain(model, optimizer, sync):
    optimizer.zero_grad()
    loss_of(model).backward()
    sync.step()


def several_forward_passes(model, optimizer, sync):
    optimizer.zero_grad()
    (loss_of(model) + loss_of(model)).backward()
    sync.step()


def accumulated(model, optimizer, sync):
    optimizer.zero_grad()
    for _ in range(2):
        loss_of(model).backward()
    sync.step()


def clipped(model, optimizer, sync):
    optimizer.zero_grad()
    loss_of(model).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    sync.step()


def clipped_by_everyones_norm(model, optimizer, sync):
    optimizer.zero_grad()
    loss_of(model).backward()
    sync.clip_grad_norm_(0.1)
    sync.step()


def with_closure(model, optimizer, sync):
    def closure():
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    assert sync.step(closure) is not None


class CountedSteps:
    """How often an optimizer's step is called."""

    def __init__(self, optimizer):
        self.count = 0
        self._step = optimizer.step
        optimizer.step = self

    def __call__(self, *arguments):
        self.count += 1
        return self._step(*arguments)


def trained(options, rank, overlap, make_model=Net, optimizer="sgd", iterate=plain, compiled=False, steps=STEPS):
    """The parameters after some steps, and how often the optimizer was called."""
    torch.manual_seed(3)
    model = make_model()
    torch.manual_seed(50 + rank)
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    sync = dssync.DivideShuffle(model, optimizer, overlap=overlap, **options)
    counted = CountedSteps(optimizer)
    used = torch.compile(model, backend="aot_eager") if compiled else model
    for _ in range(steps):
        iterate(used, optimizer, sync)
    sync.settle()
    return flat(model.parameters()), counted.count


def assert_same_bits(options, rank, steps_early, **setting):
    expected, _ = trained(options, rank, "none", **setting)
    found, calls = trained(options, rank, "layered", **setting)
    assert torch.isfinite(expected).all()
    assert torch.equal(found, expected)
    assert (calls > setting.get("steps", STEPS)) == steps_early


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_same_bits(options, rank, optimizer):
    assert_same_bits(options, rank, True, optimizer=optimizer)


@pytest.mark.parametrize("make_model", [Checkpointed, CheckpointedReentrant, Tied, Functional])
def test_models(options, rank, make_model):
    assert_same_bits(options, rank, True, make_model=make_model, steps=15)


@pytest.mark.parametrize("make_model", [CheckpointedTwice, Unused])
def test_models_that_step_after_the_backward_pass(options, rank, make_model):
    assert_same_bits(options, rank, False, make_model=make_model, steps=15)


def test_several_forward_passes(options, rank):
    assert_same_bits(options, rank, True, iterate=several_forward_passes, steps=15)


@pytest.mark.parametrize("iterate", [accumulated, clipped, clipped_by_everyones_norm, with_closure])
def test_loops_that_need_all_gradients(options, rank, iterate):
    assert_same_bits(options, rank, False, iterate=iterate, steps=15)


@pytest.mark.skipif(IS_OLD, reason="no torch.compile")
def test_compiled(options, rank):
    assert_same_bits(options, rank, True, compiled=True, steps=15)


def test_optimizers_that_may_look_at_all_gradients_step_once(options, rank):
    class Counting(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    model = Net()
    optimizer = Counting(model.parameters(), lr=0.05)
    sync = dssync.DivideShuffle(model, optimizer, overlap="layered", **options)
    counted = CountedSteps(optimizer)
    for _ in range(8):
        plain(model, optimizer, sync)
    assert counted.count == 8


@pytest.mark.parametrize("late", [clipped, accumulated])
def test_what_comes_too_late_is_said(options, late):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    sync = dssync.DivideShuffle(model, optimizer, overlap="layered", **options)
    for _ in range(6):
        plain(model, optimizer, sync)
    with pytest.raises((dssync.Error, RuntimeError), match="after the optimizer's step was made in the backward pass"):
        late(model, optimizer, sync)


def test_a_late_learning_rate_is_told_of(options, caplog):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    sync = dssync.DivideShuffle(model, optimizer, overlap="layered", **options)
    with caplog.at_level(logging.WARNING, logger="dssync"):
        for _ in range(6):
            plain(model, optimizer, sync)
        assert not caplog.messages
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.param_groups[0]["lr"] *= 0.9
            sync.step()
    assert len(caplog.messages) == 1 and "counts from the next step on" in caplog.messages[0]


def test_parameters_that_change_while_they_are_averaged(options):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    sync = dssync.DivideShuffle(model, optimizer, disagreement=0, overlap="layered", **options)
    for _ in range(6):
        plain(model, optimizer, sync)
        sync.settle()
        with torch.no_grad():
            model.outside.weight.clamp_(-1, 1)
    plain(model, optimizer, sync)
    with torch.no_grad():
        model.outside.weight.clamp_(-1, 1)
    with pytest.raises(dssync.Error, match="'outside.weight' was changed between the step and the next forward pass"):
        loss_of(model)


def test_a_model_that_is_loaded_keeps_what_was_loaded(options):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    sync = dssync.DivideShuffle(model, optimizer, disagreement=0, overlap="layered", **options)
    for _ in range(5):
        plain(model, optimizer, sync)
    saved = copy.deepcopy(model.state_dict())
    values = flat(saved.values())
    plain(model, optimizer, sync)
    model.load_state_dict(saved)
    loss_of(model)
    assert torch.equal(flat(model.parameters()), values)
    plain(model, optimizer, sync)
    sync.settle()
    assert torch.isfinite(flat(model.parameters())).all()


def test_copies_of_the_model_are_free(options):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    sync = dssync.DivideShuffle(model, optimizer, overlap="layered", **options)
    for _ in range(5):
        plain(model, optimizer, sync)
    for copied in [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]:
        loss_of(copied).backward()
    hooks = [module for module in model.modules() if module._forward_pre_hooks]
    assert len(hooks) == 6  # those with parameters of their own, and the model
    del sync
    assert not any(module._forward_pre_hooks for module in model.modules())
    loss_of(model).backward()
