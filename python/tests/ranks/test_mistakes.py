"""What is said to those who make one. A mistake that all ranks make is answered on all, one that a single rank makes too."""

import pytest
import torch
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer

import dssync
from helper import IS_OLD, backward, batch, flat, same_on_all_ranks, small_model, train


class WithRows(torch.optim.Optimizer):
    """Keeps a value for each row of a matrix, as Adafactor does."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.dim() > 1:
                    self.state[parameter].setdefault("rows", torch.zeros(len(parameter)))
                parameter.sub_(parameter.grad, alpha=0.1)


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


def test_parameter_unfrozen_that_no_optimizer_has(options):
    model = small_model()
    model[3].requires_grad_(False)
    optimizer = torch.optim.SGD(model[:3].parameters(), lr=0.1)
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


def test_part_wrapped_in_ddp(options):
    model = nn.Sequential(nn.Linear(4, 4), nn.parallel.DistributedDataParallel(nn.Linear(4, 4)))
    with pytest.raises(dssync.InputError, match="'1', a part of the model, is wrapped in DistributedDataParallel"):
        dssync.DivideShuffle(model, sgd(model), **options)


def test_ddp_around_the_model(options):
    model = small_model()
    sync = dssync.DivideShuffle(model, sgd(model), **options)
    wrapped = nn.parallel.DistributedDataParallel(model)
    with pytest.raises(dssync.InputError, match="called inside DistributedDataParallel"):
        backward(wrapped)
    assert sync.metrics["iteration"] == 0


def test_model_and_optimizer_swapped(options):
    model = small_model()
    with pytest.raises(dssync.InputError, match="model and optimizer are swapped"):
        dssync.DivideShuffle(sgd(model), model, **options)
    with pytest.raises(dssync.InputError, match="the optimizer is of type StepLR: expected a torch.optim.Optimizer, or a list"):
        dssync.DivideShuffle(model, torch.optim.lr_scheduler.StepLR(sgd(model), 1), **options)
    with pytest.raises(dssync.InputError, match="the topology is of type int: expected a Topology, the name of a file, or a dict"):
        dssync.DivideShuffle(model, sgd(model), **{**options, "topology": 8})


def test_optimizers_that_average_themselves(options):
    model = small_model()
    sharded = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    with pytest.raises(dssync.InputError, match="ZeroRedundancyOptimizer steps only a part of the parameters on each rank"):
        dssync.DivideShuffle(model, sharded, **options)


def test_several_optimizers_that_leave_something_out(options):
    model = small_model()
    some = [torch.optim.SGD(model[0].parameters(), lr=0.1), torch.optim.SGD(model[1].parameters(), lr=0.1)]
    with pytest.raises(dssync.InputError, match="none of the optimizers holds '3.weight', '3.bias'"):
        dssync.DivideShuffle(model, some, **options)
    with pytest.raises(dssync.InputError, match="several optimizers hold '0.weight', '0.bias'"):
        dssync.DivideShuffle(model, [*some, torch.optim.SGD([*model[0].parameters(), *model[3].parameters()], lr=0.1)], **options)


@pytest.mark.parametrize("overlap", ["none", "layered"])
def test_a_gradient_that_is_no_number_is_named(options, rank, overlap):
    """On all ranks, and before it reaches them."""
    model = small_model()
    optimizer = sgd(model)
    sync = dssync.DivideShuffle(model, optimizer, overlap=overlap, **options)
    train(model, optimizer, sync, 5)
    what = "the gradient of '3.weight' is not finite on rank 1, in step 6"
    with pytest.raises(RuntimeError, match=what):
        for _ in range(3):
            optimizer.zero_grad()
            inputs, labels = batch()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            if rank == 1:
                model[3].weight.register_hook(lambda gradient: gradient * float("nan"))
                model[3].bias.requires_grad_(False)
            loss.backward()
            sync.step()
    assert rank == 1 or torch.isfinite(flat(model.parameters())).all()


def test_state_that_is_not_averaged_is_named(options, caplog):
    model = nn.Linear(20, 3)
    optimizer = WithRows(model.parameters(), {})
    sync = dssync.DivideShuffle(model, optimizer, **options)
    train(model, optimizer, sync, 3)
    messages = [record.getMessage() for record in caplog.records if "not averaged" in record.getMessage()]
    assert messages == ["the optimizer's state 'rows' (of 'weight') is not averaged: it has another shape than its parameter; every "
                        "rank keeps its own"]


def test_a_step_that_nobody_synchronises(options):
    if IS_OLD:
        pytest.skip("optimizers of this PyTorch take no hooks")
    model = small_model()
    optimizer = sgd(model)
    sync = dssync.DivideShuffle(model, optimizer, **options)
    backward(model)
    with pytest.raises(dssync.InputError, match="nobody averages what it does: call sync.step"):
        optimizer.step()
    del sync
    optimizer.step()


def test_training_without_a_step(options):
    model = small_model()
    sync = dssync.DivideShuffle(model, sgd(model), **options)
    backward(model)
    with pytest.raises(dssync.InputError, match=r"trained with 1 forward passes, but sync.step\(\) was never called"):
        sync.consolidate()


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
