"""Trains until a rank ends, by an exception or without a word, or stands still. Started by test_lost_rank.py.

usage: loses_a_rank.py exception|silence|stop RANK
"""

import datetime
import os
import signal
import sys

import torch
import torch.distributed as dist

import dssync

torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
network = dssync.Topology.parse('hosts: [{name: "h[0-1]", nic: 1Gbps}]')
timeout = datetime.timedelta(seconds=30)
with dssync.DivideShuffle(model, optimizer, topology=network, disagreement=0, timeout=timeout) as sync:
    for iteration in range(10):
        model(torch.randn(4, 4)).square().mean().backward()
        sync.step()
        if iteration == 4 and dist.get_rank() == int(sys.argv[2]):
            if sys.argv[1] == "silence":
                os._exit(7)
            if sys.argv[1] == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            raise ValueError("a bad batch")
