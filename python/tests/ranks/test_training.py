"""DivideShuffle around training loops."""

import copy
import gc
import logging
import os
import pickle
import weakref

import pytest
import torch
import torch.distributed as dist
from torch import nn

import dssync
from helper import backward, flat, limit_of, on_all_ranks, same_on_all_ranks, small_model, train


@pytest.mark.parametrize("adapt", [False, True])
@pytest.mark.parametrize("overlap", ["none", "layered", "combine"])
def test_learns_and_consolidates(options, overlap, adapt):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sync = dssync.DivideShuffle(model, optimizer, overlap=overlap, disagreement=limit_of(overlap), adapt=adapt, **options)
    loss = train(model, optimizer, sync, 100)
    sync.settle()
    assert loss < 0.6  # guessing among three classes: log 3 = 1.1
    assert not same_on_all_ranks(model.parameters())
    before = flat(model.parameters())
    distance = sync.consolidate()
    assert same_on_all_ranks([*model.parameters(), *model.buffers()])
    assert distance == pytest.approx((flat(model.parameters()) - before).square().sum().item(), rel=1e-4)
    assert adapt or sync.plan_changes == []


def averaging_models(options, **arguments):
    """A model after 20 steps, and its average over the last ten, as every rank has it; with the models on the way."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    averaged = torch.optim.swa_utils.AveragedModel(model, **arguments)
    means = []
    for step in range(20):
        train(model, optimizer, sync, 1)
        if step >= 10:
            sync.settle()
            averaged.update_parameters(model)
            means.append(torch.stack(on_all_ranks(flat(model.parameters()))).double().mean(0))
    return model, averaged, sync, means


@pytest.mark.parametrize("overlap", ["none", "layered", "combine"])
def test_averages_over_the_run_are_the_same_on_all_ranks(options, overlap):
    model, averaged, sync, means = averaging_models({**options, "overlap": overlap, "disagreement": limit_of(overlap)})
    assert not same_on_all_ranks(averaged.parameters())
    sync.consolidate(averaged)
    assert same_on_all_ranks([*averaged.parameters(), *averaged.buffers()])
    assert same_on_all_ranks(model.parameters())
    assert torch.allclose(flat(averaged.parameters()).double(), torch.stack(means).mean(0), atol=1e-6)
    assert averaged.n_averaged == 10
    train(model, sync.optimizer, sync, 3)  # goes on


def test_averages_that_forget_are_the_same_on_all_ranks(options):
    model, averaged, sync, means = averaging_models(options, avg_fn=lambda mean, now, count: 0.8 * mean + 0.2 * now)
    sync.consolidate(averaged)
    expected = means[0]
    for mean in means[1:]:
        expected = 0.8 * expected + 0.2 * mean
    assert torch.allclose(flat(averaged.parameters()).double(), expected, atol=1e-6)


def test_metrics(options):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    sent = []  # not every iteration of a plan sends something
    for _ in range(12):
        train(model, optimizer, sync, 1)
        sent.append(sync.metrics["bytes_sent"])
    sync.settle()
    metrics = sync.metrics
    assert list(metrics) == ["iteration", "sync_seconds", "bytes_sent", "disagreement", "parameter_norm", "noise_ratio"]
    assert metrics["iteration"] == 12
    assert 0 < metrics["sync_seconds"] < 20
    assert max(sent[-2:]) > 0
    assert metrics["disagreement"] > 0
    assert metrics["parameter_norm"] == pytest.approx(flat(model.parameters()).norm().item(), rel=1e-5)

    class Writer:
        written = []

        def add_scalar(self, *scalar):
            self.written.append(scalar)

    sync.write_metrics(Writer())
    assert [(name, step) for name, _, step in Writer.written] == [
        (f"dssync/{name}", 12) for name in metrics if name != "iteration"]


def test_starts_from_rank_0(options, rank):
    model = small_model()
    model[0].bias.requires_grad_(False)
    model[1].running_mean.fill_(rank)
    mine = flat([*model.parameters(), *model.buffers()])
    reference = on_all_ranks(mine)[0]
    dssync.DivideShuffle(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)
    assert torch.equal(flat([*model.parameters(), *model.buffers()]), reference)


def test_without_disagreement_it_is_one_large_batch(options, size):
    """A step on every rank and then the exact average is the step with the mean of all gradients."""
    torch.manual_seed(1)
    model = nn.Linear(20, 3)
    reference = flat(model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sync = dssync.DivideShuffle(model, optimizer, disagreement=0, overlap=False, **options)
    torch.manual_seed(dist.get_rank())
    for _ in range(3):
        optimizer.zero_grad()
        backward(model)
        gradient = torch.stack(on_all_ranks(flat(p.grad for p in model.parameters()))).mean(0)
        sync.step()
        reference -= 0.1 * gradient
    assert torch.allclose(flat(model.parameters()), reference, atol=1e-6)


def test_finds_out_its_network(options, size):
    if size > 2:
        pytest.skip("takes ten seconds, and one with two ranks")
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sync = dssync.DivideShuffle(model, optimizer, **{**options, "topology": "auto"})
    text = sync.topology.yaml()
    assert sync.topology.workers == size and "nic: " in text
    assert same_on_all_ranks([torch.tensor([*text.encode()])])
    assert dssync.Topology.parse(text).names == sync.topology.names
    train(model, optimizer, sync, 2)


def test_follows_the_plan(options, network, size):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = dssync.plan(network, published=True)
    sync = dssync.DivideShuffle(model, optimizer, plan=plan, **options)
    assert sync.plan.rounds == plan.rounds
    sync = dssync.DivideShuffle(model, optimizer, published=True, **options)
    assert sync.plan.rounds == plan.rounds
    train(model, optimizer, sync, 3)


def test_ranks_in_another_order_than_the_network(size):
    """Groups follow the network: here hosts of both racks alternate."""
    hosts = ", ".join(f"{{name: h{i}, switch: {'ab'[i % 2]}}}" for i in range(size))
    network = dssync.Topology.parse(f"""
defaults: {{nic: 100Mbps}}
switches: [{{name: core}}, {{name: a, parent: core, uplink: 20Mbps}}, {{name: b, parent: core, uplink: 20Mbps}}]
hosts: [{hosts}]
""")
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sync = dssync.DivideShuffle(model, optimizer, topology=network, disagreement=0, overlap=False)
    train(model, optimizer, sync, 2)
    assert same_on_all_ranks(model.parameters())


def test_groups_frozen_and_tied(options):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(20, 20)
            self.frozen = nn.Linear(20, 20)
            self.decoder = nn.Linear(20, 20)
            self.decoder.weight = self.encoder.weight
            self.frozen.requires_grad_(False)

        def forward(self, inputs):
            return self.decoder(self.frozen(self.encoder(inputs)).relu())

    model = Tied()
    groups = [{"params": [model.encoder.weight]}, {"params": [model.encoder.bias, model.decoder.bias], "lr": 0.01}]
    optimizer = torch.optim.AdamW(groups, lr=0.001)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    frozen = flat(model.frozen.parameters())
    for _ in range(10):
        optimizer.zero_grad()
        inputs = torch.randn(8, 20)
        nn.functional.mse_loss(model(inputs), inputs).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        sync.step()
    sync.consolidate()
    assert model.decoder.weight is model.encoder.weight
    assert same_on_all_ranks(model.parameters())
    assert torch.equal(flat(model.frozen.parameters()), frozen)


def test_accumulated_gradients_and_scheduler(options):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    for number in range(1, 13):
        backward(model)
        if number % 3 == 0:
            sync.step()
            optimizer.zero_grad()
            scheduler.step()
    assert sync.metrics["iteration"] == 4
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * 0.5**2)


def test_closure(options):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sync = dssync.DivideShuffle(model, optimizer, **options)

    def closure():
        optimizer.zero_grad()
        return backward(model)

    assert sync.step(closure) > 0


def test_momentum_is_averaged_also_after_loading(options):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sync = dssync.DivideShuffle(model, optimizer, disagreement=0, overlap=False, state="averaged", **options)

    def momenta():
        return [optimizer.state[p]["momentum_buffer"] for p in model.parameters()]

    train(model, optimizer, sync, 2)
    assert same_on_all_ranks(momenta())
    optimizer.load_state_dict(optimizer.state_dict())
    train(model, optimizer, sync, 2)
    assert same_on_all_ranks(momenta())


def test_state_may_stay_local(options):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sync = dssync.DivideShuffle(model, optimizer, disagreement=0, state="local", **options)
    train(model, optimizer, sync, 2)
    assert not same_on_all_ranks([optimizer.state[model[0].weight]["momentum_buffer"]])


@pytest.mark.parametrize("state", ["local", "rotating"])
@pytest.mark.parametrize("overlap", ["none", "layered", "combine"])
def test_resumes_where_it_was(options, overlap, state):
    def start():
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        return model, optimizer

    model, optimizer = start()
    sync = dssync.DivideShuffle(model, optimizer, overlap=overlap, disagreement=limit_of(overlap), state=state, **options)
    train(model, optimizer, sync, 5)
    sync.consolidate()
    saved = copy.deepcopy([model.state_dict(), optimizer.state_dict(), sync.state_dict()])
    torch.manual_seed(dist.get_rank())
    train(model, optimizer, sync, 5)

    again, optimizer = start()
    again.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    sync = dssync.DivideShuffle(again, optimizer, overlap=overlap, disagreement=limit_of(overlap), state=state, **options)
    sync.load_state_dict(saved[2])
    torch.manual_seed(dist.get_rank())
    train(again, optimizer, sync, 5)
    assert sync.metrics["iteration"] == 10
    assert torch.equal(flat(again.parameters()), flat(model.parameters()))


def one_weight(options, **more):
    """A model, and how it makes a step of which the gradient is zero: then only averages move it."""
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    sync = dssync.DivideShuffle(model, optimizer, disagreement=limit_of("combine", 0), overlap="combine", **more, **options)

    def step():
        model.weight.grad = torch.zeros_like(model.weight)
        sync.step()

    return model, optimizer, sync, step


@pytest.mark.parametrize("loaded", ["model", "model and sync"])
def test_rolls_back_after_nan(options, rank, loaded):
    """The average that is under way has NaN, too."""
    model, optimizer, sync, step = one_weight(options)
    step()
    saved = copy.deepcopy([model.state_dict(), sync.state_dict()])
    with torch.no_grad():
        model.weight.fill_(float("nan") if rank == 0 else 7.0)
    step()
    model.load_state_dict(saved[0])
    if loaded == "model and sync":
        sync.load_state_dict(saved[1])
    for _ in range(3):
        step()
        assert torch.equal(model.weight, saved[0]["weight"])
    assert sync.metrics["disagreement"] == 0


def test_loaded_optimizer_keeps_its_values(options, rank):
    """Momentum of 8 and gradients of zero: 4, then 2. It differed between the ranks when the average was started."""
    model, optimizer, sync, step = one_weight(options, state="averaged")
    step()
    optimizer.state[model.weight]["momentum_buffer"].fill_(8.0)
    saved = copy.deepcopy(optimizer.state_dict())
    optimizer.state[model.weight]["momentum_buffer"].fill_(100.0 * rank)
    step()
    optimizer.load_state_dict(saved)
    for expected in (4, 2):
        step()
        assert optimizer.state[model.weight]["momentum_buffer"].item() == expected


def test_one_rank_may_load_alone(options, rank):
    """As for an evaluation with other values: nobody waits for it."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    train(model, optimizer, sync, 3)
    if rank == 0:
        model.load_state_dict(copy.deepcopy(model.state_dict()))
    train(model, optimizer, sync, 3)
    sync.consolidate()
    assert same_on_all_ranks(model.parameters())


def test_buffers_may_be_replaced(options, rank, size):
    model = small_model()
    sync = dssync.DivideShuffle(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)
    model[1].running_mean = torch.full((16,), float(rank))
    sync.consolidate()
    assert torch.allclose(model[1].running_mean, torch.full((16,), (size - 1) / 2))


def test_ends_when_nobody_holds_it(options):
    def threads():
        return len(os.listdir("/proc/self/task"))

    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    train(model, optimizer, sync, 3)
    pickle.dumps(model)
    before, reference = threads(), weakref.ref(sync)
    del sync
    gc.collect()
    assert reference() is None
    assert threads() < before


def test_with(options):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with dssync.DivideShuffle(model, optimizer, **options) as sync:
        train(model, optimizer, sync, 3)
    assert same_on_all_ranks([*model.parameters(), *model.buffers()])


def test_with_an_exception_does_not_consolidate(options):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ZeroDivisionError):
        with dssync.DivideShuffle(model, optimizer, **options) as sync:
            train(model, optimizer, sync, 3)
            raise ZeroDivisionError
    assert not same_on_all_ranks(model.parameters())


def test_consolidating_in_between_changes_nothing_else(options):
    """An average that was under way is dropped, on all ranks alike."""
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    for _ in range(4):
        train(model, optimizer, sync, 3)
        sync.consolidate()
        assert same_on_all_ranks(model.parameters())
        assert sync.consolidate() == pytest.approx(0, abs=1e-9)


def test_what_is_said_at_the_start(options, caplog, rank, size):
    model = small_model()
    with caplog.at_level(logging.INFO, "dssync"):
        sync = dssync.DivideShuffle(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert len(lines) == (1 if rank == 0 else 0)
    for line in [*lines, repr(sync), sync._repr_html_()]:
        assert f"{size} ranks, " in line and "S = " in line and "DistributedDataParallel" in line
    assert "<svg" in sync._repr_html_()
