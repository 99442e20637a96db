"""From the process group that the user has initialised to a World of the engine: its store and its process groups."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
import socket
from datetime import timedelta
from typing import Any, Callable, Iterator, List, Optional, Tuple

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from . import _dssync
from ._dssync import AgreementError, InputError, PeerError

_worlds = itertools.count()  # made in this process: all ranks make them in the same order


def join(device: torch.device, timeout: timedelta) -> _dssync.World:
    """A new world of all ranks, for tensors on this device. Collective."""
    if not dist.is_available():
        raise InputError("this PyTorch was built without torch.distributed")
    if not dist.is_initialized():
        raise InputError(
            "torch.distributed has no process group: call torch.distributed.init_process_group() first, "
            "in a program that torchrun started"
        )
    store = distributed_c10d._get_default_store()
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    prefix = f"dssync/{attempt}/{next(_worlds)}"
    main, news = (_connection_to(store, timeout) for _ in range(2))
    return _dssync.World(
        dist.PrefixStore(prefix, main or store),
        news and dist.PrefixStore(prefix, news),
        rank=dist.get_rank(),
        size=dist.get_world_size(),
        timeout=timeout,
        address=_own_address(store),
        make_channel=_channel_factory(device, timeout),
    )


@contextlib.contextmanager
def telling_others(world: _dssync.World) -> Iterator[None]:
    """What goes wrong on this rank alone, the others hear of at once instead of waiting for it."""
    try:
        yield
    except (AgreementError, PeerError):
        raise
    except BaseException as error:
        world.report_failure(f"{type(error).__name__}: {error}")
        raise


def _connection_to(store: Any, timeout: timedelta) -> Optional[Any]:
    """Another connection to the same store, so that its owner's stays as it is; None where there cannot be one."""
    if hasattr(store, "clone"):
        return store.clone()
    place = _place_of(store)
    if place is None:
        return None
    return dist.TCPStore(*place, is_master=False, timeout=timeout, wait_for_workers=False)


def _place_of(store: Any) -> Optional[Tuple[str, int]]:
    """Host and port of a store that is reached by TCP."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return (store.host, store.port) if isinstance(store, dist.TCPStore) else None


def _own_address(store: Any) -> str:
    """Of the interface from which the store is reached: the one that should carry this worker's traffic."""
    place = _place_of(store)
    if place is None:
        return "127.0.0.1"
    [(family, kind, protocol, _, there), *_] = socket.getaddrinfo(*place, type=socket.SOCK_DGRAM)
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(there)
        return str(probe.getsockname()[0])


def _backend_for(device: torch.device) -> str:
    """The name of the backend with which the user's process group serves a device: "gloo", "nccl"."""
    name = str(dist.get_backend())
    if ":" not in name:  # "cpu:gloo,cuda:nccl" names one for each kind of device
        return name
    return dict(pair.split(":") for pair in name.split(","))[device.type]


def _channel_factory(device: torch.device, timeout: timedelta) -> Optional[Callable[[List[int], int, str], Any]]:
    """Makes the groups of the cycle, each by its members alone. None: the engine makes Gloo groups itself."""
    backend = _backend_for(device)
    if {"use_local_synchronization", "sort_ranks"} <= inspect.signature(dist.new_group).parameters.keys():

        def make_channel(members: List[int], index: int, name: str) -> Any:
            # The order of the members is that of the network, which the engine's stages rely on.
            group = dist.new_group(
                members, timeout=timeout, backend=backend, use_local_synchronization=True, sort_ranks=False
            )
            return group._get_backend(device)

        return make_channel
    if backend != "gloo":
        raise InputError(f"with the backend {backend}, dssync needs a newer PyTorch: in {torch.__version__}, new_group() "
                         "has to be called by all ranks and sorts the members of a group")
    return None


def one_device(tensors: List[Tuple[str, torch.Tensor]]) -> torch.device:
    """The one device that all of them are on."""
    kinds = {}
    for name, tensor in tensors:
        kinds.setdefault(tensor.device, (name, tensor.dtype))
    if len(kinds) > 1:
        where = ", ".join(f"'{name}' ({dtype}) on {device}" for device, (name, dtype) in kinds.items())
        raise InputError(f"the model is on several devices: {where}; every rank has to keep its model on one device")
    [device] = kinds
    if device.type == "meta":
        raise InputError("the model is on the device 'meta': its parameters have no values yet")
    return device
