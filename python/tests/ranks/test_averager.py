"""DivideShuffleAverager with what torch builds on averagers."""

import pytest
import torch
from torch.distributed.optim import PostLocalSGDOptimizer

import dssync
from helper import backward, flat, on_all_ranks, same_on_all_ranks, small_model


def equal_models():
    torch.manual_seed(7)
    return small_model()


def test_post_local_sgd(options, rank):
    model = equal_models()
    local = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer = PostLocalSGDOptimizer(local, dssync.DivideShuffleAverager(warmup_steps=2, disagreement=0, **options))
    torch.manual_seed(rank)
    for number in range(5):
        optimizer.zero_grad()
        backward(model)
        optimizer.step()
        assert same_on_all_ranks(model.parameters()) == (number >= 2)
    state = optimizer.state_dict()
    assert state["step"] == 5
    optimizer.load_state_dict(state)
    assert optimizer.averager.step == 5


def test_keeps_the_first_local_step(options, rank):
    """The first average is that of all ranks, not a copy of rank 0."""
    model = equal_models()
    averager = dssync.DivideShuffleAverager(disagreement=0, **options)
    with torch.no_grad():
        model[0].bias.fill_(rank)
    expected = torch.stack(on_all_ranks(flat(model.parameters()))).mean(0)
    averager.average_parameters(model.parameters())
    assert torch.allclose(flat(model.parameters()), expected, atol=1e-6)


def test_converted_later(options):
    model = equal_models()
    averager = dssync.DivideShuffleAverager(**options)
    averager.average_parameters(model.parameters())
    model.double()
    with pytest.raises(dssync.InputError, match="moved or converted"):
        averager.average_parameters(model.parameters())


def test_nothing_to_average(options):
    with pytest.raises(dssync.InputError, match="nothing to train"):
        dssync.DivideShuffleAverager(**options).average_parameters([])


def test_other_parameters_than_before(options):
    averager = dssync.DivideShuffleAverager(**options)
    averager.average_parameters(equal_models().parameters())
    with pytest.raises(dssync.InputError, match="not those of the first call"):
        averager.average_parameters(equal_models().parameters())
