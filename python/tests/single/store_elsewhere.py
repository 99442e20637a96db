"""Trains with a store that no rank serves, for longer than a silence of the store would be a rank's. Started by test_lost_rank.py.

usage: store_elsewhere.py serve PORT | store_elsewhere.py RANK PORT
"""

import datetime
import sys
import time

import torch
import torch.distributed as dist

import dssync

torch.set_num_threads(1)
port = int(sys.argv[2])
timeout = datetime.timedelta(seconds=60)
if sys.argv[1] == "serve":
    store = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False, timeout=timeout)
    print("serving", flush=True)
    sys.stdin.read()
    sys.exit()
store = dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False, timeout=timeout)
dist.init_process_group("gloo", store=store, rank=int(sys.argv[1]), world_size=2)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
network = dssync.Topology.parse('hosts: [{name: "h[0-1]", nic: 1Gbps}]')
# Workers compare in the store which states of the optimizer all have: here none is averaged.
with dssync.DivideShuffle(model, optimizer, topology=network, disagreement=0, state="local", timeout=timeout) as sync:
    print("training", flush=True)
    sys.stdin.readline()  # until the store stands still
    for _ in range(50):
        model(torch.randn(4, 4)).square().mean().backward()
        sync.step()
        time.sleep(0.1)
    print("trained", flush=True)
    sys.stdin.readline()  # until it goes on
