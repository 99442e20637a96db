"""From the process group that the user has initialised to a World of the engine: its store and its process groups."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import weakref
from datetime import timedelta
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from . import _dssync
from ._dssync import AgreementError, InputError, PeerError
from .planning import Topology

GroupMaker = Callable[[Any, int, int], Any]  # from a store, a rank and a size to a process group

OLD_TORCH = int(torch.__version__.split(".")[0]) < 2
_worlds = itertools.count()  # made in this process: all ranks make them in the same order
_present: "weakref.WeakSet[_dssync.World]" = weakref.WeakSet()
_averaging: "weakref.WeakSet[_dssync.Averaging]" = weakref.WeakSet()


def ends_with_program(averaging: _dssync.Averaging) -> None:
    """Sees to it that nothing of it runs any more when Python takes itself apart."""
    _averaging.add(averaging)


@atexit.register
def _leave() -> None:
    """A rank that ends is no lost one, even where its program keeps its worlds to the end."""
    for averaging in list(_averaging):
        averaging.end()
    for world in list(_present):
        world.leave()


def join(tensors: List[Tuple[str, torch.Tensor]], timeout: timedelta) -> Tuple[_dssync.World, torch.device]:
    """A new world of all ranks, and the one device that these tensors are on. Collective."""
    if not dist.is_available():
        raise InputError("this PyTorch was built without torch.distributed")
    if not dist.is_initialized():
        raise InputError(
            "torch.distributed has no process group: call torch.distributed.init_process_group() first, "
            "in a program that torchrun started"
        )
    store = distributed_c10d._get_default_store()
    connection, liveness_connection = _connections_to(store, timeout)
    run, attempt = _run()
    maker: Optional[GroupMaker] = None

    def make_group(meeting: Any, index: int, members: int) -> Any:
        assert maker is not None  # the engine needs no groups for joining
        return maker(meeting, index, members)

    by_engine = OLD_TORCH and dist.get_backend() == "gloo"
    world = _dssync.World(
        connection or store,
        liveness_connection,
        rank=dist.get_rank(),
        size=dist.get_world_size(),
        timeout=timeout,
        run=run,
        attempt=attempt,
        number=next(_worlds),
        store_place=_place_of(store),
        make_group=None if by_engine else make_group,
    )
    _present.add(world)
    with telling_others(world):
        device = _one_device(tensors)
        if not by_engine:
            maker = _group_maker(_backend_for(device), world.address, timeout)
    return world, device


def discovered(world: _dssync.World, device: torch.device) -> Topology:
    """The network that the ranks find by measuring. Collective."""
    if device.type != "cpu":
        raise InputError(
            f'topology="auto" measures with messages from the memory of CPUs, but the model is on {device}; expected the '
            "file of a topology, such as dssync bench --topology auto --save-topology FILE writes"
        )
    return Topology.parse(world.discover_network())


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


def _run() -> Tuple[str, int]:
    """The run and its attempt as torchrun names them; no name where torchrun has none."""
    name = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    return ("" if name == "none" else name), int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


_connected: Tuple[Any, Any, Any] = (None, None, None)  # a store, and two more connections to it


def _connections_to(store: Any, timeout: timedelta) -> Tuple[Any, Any]:
    """Two for all worlds of this process, so that the user's own stays as it is; None where there cannot be any."""
    global _connected
    if _connected[0] is not store:
        _connected = (store, _connection_to(store, timeout), _connection_to(store, timeout))
    return _connected[1:]


def _connection_to(store: Any, timeout: timedelta) -> Optional[Any]:
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


def _backend_for(device: torch.device) -> str:
    """The name of the backend with which the user's process group serves a device: "gloo", "nccl"."""
    if not hasattr(dist, "get_backend_config"):
        return str(dist.get_backend())
    backends = dict(pair.split(":") for pair in dist.get_backend_config().split(","))  # "cpu:gloo,cuda:nccl"
    if device.type not in backends:
        raise InputError(f"the process group has no backend for '{device.type}', where the model is; it has {backends}")
    return str(backends[device.type])


def _group_maker(backend: str, address: str, timeout: timedelta) -> GroupMaker:
    """For the groups of the cycle, each made by its members alone.

    Not by new_group(): in old versions all ranks have to call it; and with use_local_synchronization (as of 2.13) the name
    of a group depends on how many groups a rank is in, so that ranks in different numbers of them never meet.
    """
    if backend == "gloo":
        gloo = dist.ProcessGroupGloo._Options()
        interface = os.environ.get("GLOO_SOCKET_IFNAME")
        place = {"interface": interface} if interface else {"hostname": address}
        gloo._devices = [dist.ProcessGroupGloo.create_device(**place)]  # one thread and one port for all groups
        gloo._threads = 4
        gloo._timeout = timeout
        return lambda store, rank, size: dist.ProcessGroupGloo(store, rank, size, gloo)
    if backend == "nccl":
        nccl = dist.ProcessGroupNCCL.Options()
        nccl._timeout = timeout
        return lambda store, rank, size: dist.ProcessGroupNCCL(store, rank, size, nccl)
    plugin = dist.Backend._plugins.get(backend.upper())
    if plugin is None or plugin.extended_api:
        raise InputError(f"dssync cannot make groups of the backend {backend}: only of gloo, nccl, and plain plug-ins")
    return lambda store, rank, size: plugin.creator_fn(store, rank, size, timeout)


def _one_device(tensors: List[Tuple[str, torch.Tensor]]) -> torch.device:
    """The one device that all of them are on."""
    kinds: Dict[torch.device, Tuple[str, torch.dtype]] = {}
    for name, tensor in tensors:
        kinds.setdefault(tensor.device, (name, tensor.dtype))
    if not kinds:
        raise InputError("there is nothing to train: the model has no parameters")
    if len(kinds) > 1:
        where = ", ".join(f"'{name}' ({dtype}) on {device}" for device, (name, dtype) in kinds.items())
        raise InputError(f"the model is on several devices: {where}; every rank has to keep its model on one device")
    [device] = kinds
    if device.type == "meta":
        raise InputError("the model is on the device 'meta': its parameters have no values yet")
    return device
