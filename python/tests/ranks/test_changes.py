"""Changes of a model that are harmless: it is moved, given other values, frozen, saved in part."""

import io

import pytest
import torch
from torch import nn

import dssync
from helper import backward, flat, same_on_all_ranks, small_model, train


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


@pytest.mark.parametrize("overlap", ["none", "layered", "combine"])
def test_parameters_that_were_moved_are_averaged(options, overlap, rank):
    """model.to("cpu:0") copies, because that is not the device "cpu"."""
    model = small_model()
    optimizer = sgd(model)
    sync = dssync.DivideShuffle(model, optimizer, disagreement=1, overlap=overlap, **options)
    train(model, optimizer, sync, 4)
    place = model[0].weight.data_ptr()
    model.to("cpu:0")
    if model[0].weight.data_ptr() == place:  # old versions of PyTorch know that it is the same
        for parameter in model.parameters():
            parameter.data = parameter.data.clone()
    assert model[0].weight.data_ptr() != place
    train(model, optimizer, sync, 4)
    assert model[0].weight.data_ptr() == place
    sync.consolidate()
    assert same_on_all_ranks(model.parameters())


@pytest.mark.parametrize("overlap", ["none", "layered", "combine"])
def test_values_that_were_assigned_are_averaged(options, rank, size, overlap):
    model = nn.Linear(20, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    sync = dssync.DivideShuffle(model, optimizer, disagreement=1, overlap=overlap, **options)
    train(model, optimizer, sync, 5)
    model.weight.data = torch.full((3, 20), float(rank))
    model.bias.data = torch.full((3,), float(rank))
    sync.consolidate()
    assert torch.allclose(model.weight, torch.full((3, 20), (size - 1) / 2))
    assert torch.allclose(model.bias, torch.full((3,), (size - 1) / 2))


def test_freezing_and_unfreezing(options):
    model = small_model()
    optimizer = sgd(model)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    train(model, optimizer, sync, 2)
    model[3].requires_grad_(False)
    optimizer.zero_grad(set_to_none=True)
    sync.consolidate()
    frozen = flat(model[3].parameters())
    train(model, optimizer, sync, 2)
    assert torch.allclose(flat(model[3].parameters()), frozen, atol=1e-6)
    model[3].requires_grad_(True)
    train(model, optimizer, sync, 2)
    assert not torch.allclose(flat(model[3].parameters()), frozen, atol=1e-6)
    sync.consolidate()
    assert same_on_all_ranks(model.parameters())


@pytest.mark.parametrize("attach", [False, True])
@pytest.mark.parametrize("overlap", ["none", "layered", "combine"])
def test_what_was_frozen_at_first_is_averaged_once_it_is_trained(options, overlap, attach):
    if attach and not hasattr(torch.optim.Optimizer, "register_step_pre_hook"):
        pytest.skip("optimizers of this PyTorch take no hooks")
    model = small_model()
    model[3].requires_grad_(False)
    optimizer = sgd(model)
    sync = dssync.DivideShuffle(model, optimizer, disagreement=1, overlap=overlap, attach=attach, **options)
    train(model, optimizer, optimizer if attach else sync, 5)
    model[3].requires_grad_(True)
    train(model, optimizer, optimizer if attach else sync, 5)
    assert sync.metrics["iteration"] == 10
    assert {name for name, _ in sync._parameters} == {name for name, _ in model.named_parameters()}
    sync.consolidate()
    assert same_on_all_ranks(model.parameters())


def test_a_part_is_saved_alone(options):
    def saved_bytes(what):
        file = io.BytesIO()
        torch.save(what, file)
        return len(file.getvalue())

    model = nn.Sequential(nn.Linear(100, 10), nn.Linear(10, 3000))
    alone = saved_bytes(nn.Linear(100, 10).state_dict())
    optimizer = sgd(model)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    assert saved_bytes(model[0].state_dict()) < alone + 200
    model(torch.randn(2, 100)).sum().backward()
    sync.step()
    sync.consolidate()
    assert saved_bytes(model[0].state_dict()) < alone + 200


def test_a_mean_of_models_and_tensors_are_consolidated_too(options, rank, size):
    model = small_model()
    optimizer = sgd(model)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    train(model, optimizer, sync, 3)
    mean, number = torch.optim.swa_utils.AveragedModel(model), torch.tensor([float(rank)])
    sync.consolidate(also=[mean, number], state=True)
    assert same_on_all_ranks(mean.parameters())
    assert same_on_all_ranks(optimizer.state[p]["momentum_buffer"] for p in model.parameters())
    assert number.item() == pytest.approx((size - 1) / 2)
    with pytest.raises(dssync.InputError, match="was given a list: expected models and tensors"):
        sync.consolidate(also=[[mean]])
    backward(model)
    sync.step()
