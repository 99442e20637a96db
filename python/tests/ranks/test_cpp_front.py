"""The Python and the C++ front do the same, bit for bit."""

import os
import pathlib
import socket
import subprocess

import pytest
import torch
import torch.distributed as dist
from torch import nn

import dssync

ROOT = pathlib.Path(__file__).resolve().parents[3]
ITERATIONS = 20
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}


def wave(count, shift):
    return torch.sin(torch.arange(count, dtype=torch.float64) * 0.37 + shift).to(torch.float32)


def by_python(topology, optimizer, overlap, rank):
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 3))
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(wave(parameter.numel(), number).view(parameter.shape) * 0.2)
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    sync = dssync.DivideShuffle(model, optimizer, topology=topology, overlap=overlap, disagreement=2)
    for iteration in range(ITERATIONS):
        inputs = wave(32 * 20, 1000 * rank + iteration).view(32, 20)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1)).backward()
        sync.step()
    sync.settle()
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def by_cpp(program, topology, optimizer, overlap, rank, file):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = [probe.getsockname()[1]]
    dist.broadcast_object_list(port)
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": dist.get_world_size(), "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": port[0], "TORCHELASTIC_USE_AGENT_STORE": "False"}
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    command = [program, topology, optimizer, overlap, str(ITERATIONS), file]
    subprocess.run(command, env=environment, check=True, timeout=60)
    return torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.float32)


@pytest.mark.parametrize("overlap", ["none", "layered", "combine"])
@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
@pytest.mark.parametrize("racks", [1, 2])
def test_same_bits(tmp_path, rank, size, network, racks, optimizer, overlap):
    program = os.environ.get("DSSYNC_CPP_FRONT")
    if not program:
        pytest.skip("no C++ front for this PyTorch")
    topology = tmp_path / "network.yaml"
    topology.write_text(network.yaml() if racks == 2 else f'hosts: [{{name: "h[0-{size - 1}]", nic: 100Mbps}}]')
    expected = by_cpp(program, topology, optimizer, overlap, rank, tmp_path / "parameters")
    assert torch.equal(by_python(topology, optimizer, overlap, rank), expected)
