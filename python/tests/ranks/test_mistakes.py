"""What is said to those who make one. A mistake that all ranks make is answered on all, one that a single rank makes too."""

import pytest
import torch
from torch import nn

import dssync
from helper import backward, same_on_all_ranks, small_model, train


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def test_optimizer_of_another_model(options):
    with pytest.raises(dssync.InputError, match=r"optimizer does not hold '0.weight', '0.bias', '1.weight' and 3 more"):
        dssync.DivideShuffle(small_model(), sgd(small_model()), **options)


def test_optimizer_with_more_than_the_model(options):
    model, other = small_model(), nn.Linear(2, 2)
    optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)
    with pytest.raises(dssync.InputError, match="holds 2 parameters that the model does not have"):
        dssync.DivideShuffle(model, optimizer, **options)


def test_topology_with_another_number_of_workers(options, size):
    model = small_model()
    network = dssync.Topology.parse(f'hosts: [{{name: "h[0-{size}]", nic: 1Gbps}}]')
    with pytest.raises(dssync.InputError, match=f"topology has {size + 1} workers, but {size} are running"):
        dssync.DivideShuffle(model, sgd(model), **{**options, "topology": network})


def test_parameter_added_to_the_optimizer(options):
    model = small_model()
    optimizer = sgd(model)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    train(model, optimizer, sync, 1)
    model.scale = nn.Parameter(torch.ones(3))
    optimizer.add_param_group({"params": [model.scale]})
    with pytest.raises(dssync.InputError, match="a parameter was added: scale; make a new DivideShuffle"):
        train(model, optimizer, sync, 1)


def test_parameter_added_to_the_model_alone(options):
    model = small_model()
    sync = dssync.DivideShuffle(model, sgd(model), **options)
    model.scale = nn.Parameter(torch.ones(3))
    with pytest.raises(dssync.InputError, match="a parameter was added: scale"):
        sync.consolidate()


def test_parameter_unfrozen(options):
    model = small_model()
    model[3].requires_grad_(False)
    optimizer = sgd(model)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    model[3].requires_grad_(True)
    with pytest.raises(dssync.InputError, match="a parameter was added: 3.bias, 3.weight"):
        train(model, optimizer, sync, 1)


@pytest.mark.parametrize("call", ["step", "consolidate"])
def test_model_converted_later(options, call):
    model = small_model()
    sync = dssync.DivideShuffle(model, sgd(model), **options)
    backward(model)
    model.double()
    with pytest.raises(dssync.InputError, match="moved or converted"):
        getattr(sync, call)()


def test_parameters_replaced_by_loading(options):
    model = small_model()
    sync = dssync.DivideShuffle(model, sgd(model), **options)
    try:
        model.load_state_dict(model.state_dict(), assign=True)
    except TypeError:
        pytest.skip("this PyTorch loads values only")
    with pytest.raises(dssync.InputError, match="a parameter was added: 0.bias, 0.weight, "):
        sync.step()


def test_buffer_added(options):
    model = small_model()
    sync = dssync.DivideShuffle(model, sgd(model), **options)
    model.register_buffer("seen", torch.zeros(2))
    with pytest.raises(dssync.InputError, match=r"buffers were added, removed or converted: 'seen' torch.float32 \[2\]; make a new"):
        sync.consolidate()


def test_closure_and_scaler(options):
    model = small_model()
    sync = dssync.DivideShuffle(model, sgd(model), **options)
    with pytest.raises(dssync.InputError, match="without a closure"):
        sync.step(lambda: backward(model), scaler=object())


def test_models_differ(options, rank):
    model = nn.Linear(20, 3 if rank == 0 else 4)
    message = r"rank 1 has 'weight Float \[4, 20\]' where rank 0 has 'weight Float \[3, 20\]'"
    with pytest.raises(dssync.AgreementError, match=message):
        dssync.DivideShuffle(model, sgd(model), **options)


def test_options_differ(options, rank):
    model = small_model()
    with pytest.raises(dssync.AgreementError, match="rank 1 has 'overlap auto' where rank 0 has 'overlap none'"):
        dssync.DivideShuffle(model, sgd(model), overlap=rank > 0, **options)


def test_several_devices(options):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4).half().to("meta"))
    message = r"several devices: '0.weight' \(torch.float32\) on cpu, '1.weight' \(torch.float16\) on meta"
    with pytest.raises(dssync.InputError, match=message):
        dssync.DivideShuffle(model, sgd(model), **options)


def test_mixed_types_on_one_device_are_no_mistake(options):
    model = nn.Sequential(nn.Linear(20, 3), nn.Linear(3, 3).double())
    optimizer = sgd(model)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    model[1](model[0](torch.randn(8, 20)).double()).square().mean().backward()
    sync.step()
    sync.consolidate()
    assert same_on_all_ranks(model.parameters())


def test_type_that_cannot_be_averaged(options):
    model = nn.Linear(4, 4).to(torch.complex64)
    with pytest.raises(dssync.InputError, match="'weight' is of type ComplexFloat"):
        dssync.DivideShuffle(model, sgd(model), **options)


def test_wrapped_in_ddp(options):
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 4))
    with pytest.raises(dssync.InputError, match="DistributedDataParallel, which averages gradients"):
        dssync.DivideShuffle(model, sgd(model), **options)


def test_nothing_to_train(options):
    model = nn.Linear(4, 4).requires_grad_(False)
    with pytest.raises(dssync.InputError, match="no parameter that is trained"):
        dssync.DivideShuffle(model, sgd(model), **options)


def test_no_parameters_at_all(options):
    with pytest.raises(dssync.InputError, match="nothing to train"):
        dssync.DivideShuffle(nn.ReLU(), sgd(nn.Linear(1, 1)), **options)


def test_unknown_treatment_of_the_state(options):
    model = small_model()
    with pytest.raises(dssync.InputError, match="state: expected one of auto, inferred, local, averaged, rotating, but found 'shared'"):
        dssync.DivideShuffle(model, sgd(model), state="shared", **options)


@pytest.mark.parametrize("mistake", ["does not hold", "nothing to train"])
def test_mistake_of_one_rank_is_heard_by_all(options, rank, mistake):
    model = small_model() if rank > 0 or mistake == "does not hold" else nn.ReLU()
    optimizer = sgd(model if rank > 0 else small_model())
    expected, message = (dssync.InputError, mistake) if rank == 0 else (dssync.PeerError, "rank 0 failed: InputError")
    with pytest.raises(expected, match=message):
        dssync.DivideShuffle(model, optimizer, **options)
