"""The extension module. Its parts are documented where python/dssync uses them."""

from datetime import timedelta
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

version: str

class Error(RuntimeError):
    """Anything that dssync reports as a failure."""

class InputError(Error):
    """Something that the user gave is wrong. The message says what was expected."""

class AgreementError(Error):
    """The ranks were not given the same thing. The message names the ranks and the difference."""

class PeerError(Error):
    """Another rank is lost, silent, behind or never came. The message names it."""

class Topology:
    @property
    def workers(self) -> int: ...
    @property
    def names(self) -> List[str]: ...
    def yaml(self) -> str: ...

class Plan:
    @property
    def names(self) -> List[str]: ...
    @property
    def rounds(self) -> List[Tuple[str, List[List[int]]]]: ...
    @property
    def shards(self) -> int: ...
    @property
    def mixing(self) -> Tuple[float, float, bool]: ...
    @property
    def cost(self) -> Dict[str, Any]: ...

def read_topology(file: str) -> Tuple[Topology, List[str]]: ...
def parse_topology(text: str) -> Topology: ...
def parse_bytes(text: str) -> int: ...
def format_duration(seconds: float) -> str: ...
def best_plan(topology: Topology, bytes: float, disagreement: float, group_limit: int) -> Optional[Plan]: ...
def published_plan(topology: Topology, bytes: float, group_limit: int) -> Plan: ...
def smallest_disagreement(topology: Topology, bytes: float, group_limit: int) -> float: ...

class World:
    def __init__(
        self,
        store: Any,
        liveness_connection: Optional[Any],
        *,
        rank: int,
        size: int,
        timeout: timedelta,
        address: str,
        run: str,
        attempt: int,
        number: int,
        store_place: str,
        rank_0_serves_store: bool,
        make_group: Optional[Callable[[Any, int, int], Any]],
    ) -> None: ...
    @property
    def run(self) -> str: ...
    def leave(self) -> None: ...
    def agree(self, topic: str, lines: List[str]) -> None: ...
    def report_failure(self, cause: str) -> None: ...
    def discover_network(self) -> str: ...

class Averaging:
    def __init__(
        self,
        world: World,
        topology: Topology,
        parameters: Sequence[Tuple[str, torch.Tensor]],
        buffers: Sequence[Tuple[str, torch.Tensor]],
        frozen: Sequence[Tuple[str, torch.Tensor]],
        state_of_optimizer: Optional[Callable[[], List[Tuple[str, List[Tuple[str, torch.Tensor]]]]]],
        *,
        plan: Optional[Plan],
        disagreement: float,
        group_limit: int,
        published: bool,
        adapt: bool,
        overlap: bool,
        state: str,
        state_period: int,
        warmup_steps: int,
    ) -> None: ...
    def before_step(self) -> None: ...
    def after_step(self) -> None: ...
    def drop(self) -> None: ...
    def consolidate(self) -> float: ...
    def resume_at(self, iteration: int) -> None: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def iteration(self) -> int: ...
    @property
    def plan_changes(self) -> List[Tuple[int, str]]: ...
    @property
    def metrics(self) -> Tuple[float, int, float, float]: ...
