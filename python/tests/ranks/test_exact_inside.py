"""Exact regions: gradients are averaged inside each host, and parameters between hosts."""

import pytest
import torch
import torch.distributed as dist

import dssync
from helper import backward, batch, flat, on_all_ranks, same_on_all_ranks, small_model


def hosts_of_two():
    """Two ranks on every host but the last, if their number is odd."""
    ranks = dist.get_world_size()
    hosts = [f"{{name: h{first}, switch: s, workers: {min(2, ranks - first)}}}" for first in range(0, ranks, 2)]
    return dssync.Topology.parse(f"defaults: {{nic: 1Gbps}}\nswitches: [{{name: s}}]\nhosts: [{', '.join(hosts)}]\n")


def scaler_for_cpus():
    if not hasattr(torch, "amp") or not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this PyTorch has no GradScaler for CPUs")
    return torch.amp.GradScaler("cpu", init_scale=4.0)


def scaled_backward(model, scaler):
    inputs, labels = batch()
    scaler.scale(torch.nn.functional.cross_entropy(model(inputs), labels)).backward()


def train(sync, model, optimizer, steps, passes=1):
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(passes):
            backward(model)
        sync.clip_grad_norm_(1.0)
        sync.step()


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
@pytest.mark.parametrize("passes", [1, 2])
def test_ranks_of_a_host_stay_equal(overlap, kind, passes):
    model = small_model()
    optimizer = kind(model.parameters(), lr=0.02)
    sync = dssync.DivideShuffle(
        model, optimizer, topology=hosts_of_two(), disagreement=1, overlap=overlap, exact_inside="host"
    )
    train(sync, model, optimizer, 7, passes)
    values = on_all_ranks(flat(model.parameters()))
    for first in range(0, len(values) - 1, 2):
        assert torch.equal(values[first], values[first + 1])
    if len(values) > 2:
        assert sync.plan.replicas[0] == (0, 1)
        assert not torch.equal(values[0], values[2])
    sync.consolidate()
    assert same_on_all_ranks(model.parameters())


def test_gradients_are_the_means_of_a_host():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sync = dssync.DivideShuffle(model, optimizer, topology=hosts_of_two(), overlap=False, exact_inside="host")
    backward(model)
    own = on_all_ranks(flat(p.grad for p in model.parameters()))
    sync.step()
    first = dist.get_rank() // 2 * 2
    expected = torch.stack(own[first : first + 2]).mean(0)
    assert torch.allclose(flat(p.grad for p in model.parameters()), expected, atol=1e-6)


@pytest.mark.parametrize("overlap", ["none", "layered", "combine"])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_averages_during_the_backward_pass_leave_the_same_bits(overlap, kind):
    def trained(accumulates):
        torch.manual_seed(7)
        model = small_model()
        torch.manual_seed(100 + dist.get_rank())
        optimizer = kind(model.parameters(), lr=0.02)
        sync = dssync.DivideShuffle(
            model, optimizer, topology=hosts_of_two(), disagreement=1, overlap=overlap, exact_inside="host", accumulates=accumulates
        )
        train(sync, model, optimizer, 4)
        sync.consolidate()
        train(sync, model, optimizer, 4)
        sync.settle()
        return flat(model.parameters())

    at_the_step = trained(True)
    assert torch.equal(trained(False), at_the_step)
    assert torch.equal(trained(None), at_the_step)


@pytest.mark.parametrize("accumulates", [False, None])
def test_a_second_backward_pass_would_change_what_is_averaged(accumulates):
    """From the moment when one pass was announced, or was all that the first steps had."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sync = dssync.DivideShuffle(
        model, optimizer, topology=hosts_of_two(), overlap=False, exact_inside="host", accumulates=accumulates
    )
    train(sync, model, optimizer, 3)
    optimizer.zero_grad()
    backward(model)
    if dist.get_world_size() % 2 == 1 and dist.get_rank() == dist.get_world_size() - 1:
        backward(model)  # alone on its host
    else:
        with pytest.raises(RuntimeError, match="has changed while it is averaged: expected one backward pass for each step"):
            backward(model)


def test_a_closure_comes_too_late():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sync = dssync.DivideShuffle(model, optimizer, topology=hosts_of_two(), exact_inside="host")
    with pytest.raises(dssync.InputError, match="call the closure first"):
        sync.step(lambda: backward(model))
    train(sync, model, optimizer, 1)


def test_overflow_on_one_rank_skips_the_step_of_its_host():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = scaler_for_cpus()
    sync = dssync.DivideShuffle(model, optimizer, topology=hosts_of_two(), overlap=False, exact_inside="host")
    for step in range(3):
        optimizer.zero_grad()
        scaled_backward(model, scaler)
        if step == 1 and dist.get_rank() == 0:
            next(model.parameters()).grad.fill_(float("inf"))
        sync.finish_backward()
        scaler.unscale_(optimizer)
        sync.step(scaler=scaler)
        scaler.update()
    values = on_all_ranks(flat(model.parameters()))
    assert all(torch.isfinite(value).all() for value in values)
    assert torch.equal(values[0], values[1])


def test_gradients_are_not_unscaled_before_they_are_averaged():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = scaler_for_cpus()
    sync = dssync.DivideShuffle(model, optimizer, topology=hosts_of_two(), exact_inside="host")
    scaled_backward(model, scaler)
    scaler.unscale_(optimizer)
    with pytest.raises(dssync.InputError, match="call finish_backward"):
        sync.step(scaler=scaler)


def test_an_averager_of_parameters_knows_no_gradients():
    plan = dssync.plan(hosts_of_two(), exact_inside="host")
    with pytest.raises(dssync.InputError, match="use DivideShuffle"):
        dssync.DivideShuffleAverager(topology=hosts_of_two(), plan=plan)
