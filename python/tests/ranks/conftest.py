"""Every rank of torchrun runs all tests, in the same order. A rank that fails lets the others fail within the timeout."""

import datetime

import pytest
import torch
import torch.distributed as dist

import dssync

TIMEOUT = datetime.timedelta(seconds=20)


def pytest_configure(config):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=TIMEOUT)
    if dist.get_rank() > 0:  # one report is enough where all is well
        config.option.verbose = -2


def pytest_unconfigure():
    dist.destroy_process_group()


@pytest.fixture
def rank():
    return dist.get_rank()


@pytest.fixture
def size():
    return dist.get_world_size()


@pytest.fixture
def network(size):
    """Two racks with a slow core between them."""
    first = (size + 1) // 2
    return dssync.Topology.parse(f"""
defaults: {{nic: 100Mbps}}
switches: [{{name: core}}, {{name: a, parent: core, uplink: 20Mbps}}, {{name: b, parent: core, uplink: 20Mbps}}]
hosts: [{{name: "a[0-{first - 1}]", switch: a}}, {{name: "b[0-{size - first - 1}]", switch: b}}]
""")


@pytest.fixture
def options(network):
    return {"topology": network, "timeout": TIMEOUT}


@pytest.fixture(autouse=True)
def own_seed(rank):
    torch.manual_seed(100 + rank)
