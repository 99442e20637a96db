#!/usr/bin/env python3
"""What the Python package adds to each step, for the parameters of ResNet-18.

    PYTHONPATH=build/dev/python bench/python_overhead.py [--steps 400]

Compares sync.step() with the calls of the engine and of the optimizer that it makes, one after the other, in one process. The
optimizer does nothing, so that its time cannot hide the difference. Fails where the median is 100 microseconds or more.
"""

import argparse
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn

import dssync


def resnet18():
    """A module with ResNet-18's 62 parameters."""
    convolutions = [(64, 3, 7)]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        convolutions += [(outputs, inputs, 3), (outputs, outputs, 3)]
        convolutions += [(outputs, inputs, 1)] if inputs != outputs else []
        convolutions += [(outputs, outputs, 3), (outputs, outputs, 3)]
        inputs = outputs
    layers = []
    for outputs, inputs, size in convolutions:
        layers += [nn.Conv2d(inputs, outputs, size, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, nn.Linear(512, 1000))


LIMIT = 100  # microseconds


class Idle(torch.optim.SGD):
    def step(self, closure=None):
        return None


def microseconds(work):
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.NamedTemporaryFile() as file:
        dist.init_process_group("gloo", store=dist.FileStore(file.name, 1), rank=0, world_size=1)
        model = resnet18()
        optimizer = Idle(model.parameters(), lr=0.1)
        network = dssync.Topology.parse("hosts: [{name: a, nic: 1Gbps}]")
        sync = dssync.DivideShuffle(model, optimizer, topology=network, overlap=False)
        engine = sync._averaging

        def bare():
            engine.before_step()
            with sync._hooks.making():  # otherwise a step beside sync.step() is refused
                optimizer.step()
            engine.after_step()

        differences, alone = [], []
        for _ in range(options.steps):
            alone.append(microseconds(bare))
            differences.append(microseconds(sync.step) - alone[-1])
        metrics = statistics.median(microseconds(lambda: sync.metrics) for _ in range(options.steps))
        quartiles = statistics.quantiles(differences, n=4)
        parameters = list(model.parameters())
        print(f"PyTorch {torch.__version__}, {len(parameters)} parameters, {sum(p.numel() for p in parameters) / 1e6:.1f} million elements")
        print(f"sync.step() beyond the engine and the optimizer: {quartiles[1]:.1f} us (quartiles {quartiles[0]:.1f} to {quartiles[2]:.1f})")
        adam = torch.optim.AdamW([torch.nn.Parameter(p.detach().clone()) for p in parameters])
        for copied, p in zip(adam.param_groups[0]["params"], parameters):
            copied.grad = torch.randn_like(copied)
            p.grad = torch.randn_like(p)
        checks, steps = ([microseconds(work) for _ in range(20)] for work in (sync._check_finite, adam.step))
        print(f"check_finite: {statistics.median(checks):.0f} us; a step of AdamW: {statistics.median(steps):.0f} us")
        print(f"the engine, for one worker: {statistics.median(alone):.0f} us; sync.metrics: {metrics:.1f} us")
        del engine, sync
        dist.destroy_process_group()
    if quartiles[1] >= LIMIT:
        sys.exit(f"failed: Python adds {quartiles[1]:.1f} us to a step, {LIMIT} or more")


if __name__ == "__main__":
    main()
