"""A rank that stands still (SIGSTOP) is named by all others within seconds, wherever they wait; the rank itself, once it goes
on, learns that it was given up, and blames nobody."""

import datetime
import os
import signal
import time

import pytest
import torch
import torch.distributed as dist
from helper import sgd, small_model
from torch.distributed import distributed_c10d

import dssync


def waits_in_step(sync, model):
    while True:
        model(torch.randn(8, 20)).square().mean().backward()
        sync.step()


def waits_in_consolidate(sync, model):
    while True:
        sync.consolidate()


@pytest.mark.parametrize("wait", [waits_in_step, waits_in_consolidate])
def test_a_stopped_rank_is_named_by_all_others(options, rank, size, wait):
    stopped = size - 1  # rank 0 may serve the store with which this test resumes the others
    process_ids = [None] * size
    dist.all_gather_object(process_ids, os.getpid())
    model = small_model()
    # Long enough that nobody is named because of it.
    sync = dssync.DivideShuffle(model, sgd(model), **(options | {"timeout": datetime.timedelta(minutes=5)}))
    store = distributed_c10d._get_default_store()
    key = f"named the stopped rank in {wait.__name__}"
    dist.barrier()
    if rank == stopped:
        os.kill(os.getpid(), signal.SIGSTOP)
        with pytest.raises(dssync.PeerError, match=f"the others have given this worker up: rank {rank} gives no sign of life"):
            wait(sync, model)
    else:
        start = time.monotonic()
        try:
            with pytest.raises(dssync.PeerError, match=f"rank {stopped} gives no sign of life"):
                wait(sync, model)
            seconds = time.monotonic() - start
            print(f"rank {rank} named the stopped rank after {seconds:.1f} s in {wait.__name__}")
            assert seconds < 15
        finally:
            store.add(key, 1)
            if rank == 0:
                while store.add(key, 0) < size - 1:
                    time.sleep(0.05)
                os.kill(process_ids[stopped], signal.SIGCONT)
    dist.barrier()
