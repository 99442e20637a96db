"""Plans as small typed values: who averages with whom, how well that mixes, what it costs. The planner itself is C++."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _dssync
from ._dssync import InputError

DEFAULT_DISAGREEMENT = _dssync.default_disagreement

__all__ = ["AnyTopology", "Cost", "Link", "Mixing", "Plan", "Round", "Topology", "as_topology", "plan"]


class Topology:
    """A network: hosts with workers, switches, links. docs/topology.md describes the files."""

    def __init__(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Reads dssync's YAML or Slurm's topology.conf."""
        self._native, self.notes = _dssync.read_topology(os.fspath(file))

    @classmethod
    def parse(cls, text: str) -> Topology:
        """From YAML in a string."""
        topology = cls.__new__(cls)
        topology._native = _dssync.parse_topology(text)
        topology.notes = []
        return topology

    @classmethod
    def flat(cls, workers: int, nic: str = "10Gbps") -> Topology:
        """So many hosts behind one switch that is never the bottleneck, each with a worker and a NIC of this rate."""
        if workers < 1:
            raise InputError(f"a topology with {workers} workers: expected at least 1")
        return cls.parse(json.dumps({"defaults": {"nic": nic}, "hosts": [{"name": f"h[0-{workers - 1}]"}]}))

    @property
    def workers(self) -> int:
        return self._native.workers

    @property
    def names(self) -> List[str]:
        """Of the workers, by rank."""
        return self._native.names

    def yaml(self) -> str:
        """As a topology file."""
        return self._native.yaml()

    def _summary(self) -> str:
        names = self.names
        shown = " ".join(names if len(names) <= 8 else [*names[:4], "...", names[-1]])
        return f"{self.workers} worker{'s' if self.workers > 1 else ''}: {shown}"

    def __repr__(self) -> str:
        return f"Topology({self._summary()})"

    def _repr_html_(self) -> str:
        return f"<details><summary>{html.escape(self._summary())}</summary><pre>{html.escape(self.yaml())}</pre></details>"


AnyTopology = Union[Topology, str, "os.PathLike[str]", Mapping[str, Any]]


def as_topology(topology: AnyTopology) -> Topology:
    """A file is read; a dict has what a file would have."""
    if isinstance(topology, Topology):
        return topology
    if isinstance(topology, Mapping):
        return Topology.parse(json.dumps(topology))
    if not isinstance(topology, (str, os.PathLike)):
        raise InputError(
            f"the topology is of type {type(topology).__name__}: expected a Topology, the name of a file, or a dict"
        )
    return Topology(topology)


@dataclass(frozen=True)
class Round:
    """One division of the workers into groups; a group of one keeps its local step."""

    label: str
    groups: Tuple[Tuple[int, ...], ...]


@dataclass(frozen=True)
class Mixing:
    """How well a schedule mixes: docs/mixing.md."""

    cycle_norm: float
    steady_disagreement: float
    exact: bool


@dataclass(frozen=True)
class Link:
    """What one iteration puts on one direction of a cable."""

    bytes_per_iteration: float
    seconds: float


@dataclass(frozen=True)
class Cost:
    """What the network needs for one iteration."""

    seconds_per_iteration: float
    latency_seconds: float
    bottleneck: Optional[str]
    links: Dict[str, Link] = field(repr=False)

    @classmethod
    def _from(cls, cost: Dict[str, Any]) -> Cost:
        links = {name: Link(*use) for name, use in cost["links"].items()}
        return cls(cost["seconds_per_iteration"], cost["latency_seconds"], cost["bottleneck"], links)


@dataclass(frozen=True, repr=False)
class Plan:
    """A cycle of rounds with its predicted cost and mixing."""

    names: Tuple[str, ...]
    rounds: Tuple[Round, ...]
    shards: int
    mixing: Mixing
    cost: Cost
    replicas: Tuple[Tuple[int, ...], ...]  # ranks that average their gradients in every iteration; empty: every rank is one
    inside: Cost  # of these averages
    _native: _dssync.Plan = field(compare=False)

    @classmethod
    def _from(cls, native: _dssync.Plan) -> Plan:
        return cls(
            names=tuple(native.names),
            rounds=tuple(Round(label, tuple(map(tuple, groups))) for label, groups in native.rounds),
            shards=native.shards,
            mixing=Mixing(*native.mixing),
            cost=Cost._from(native.cost),
            replicas=tuple(map(tuple, native.replicas)),
            inside=Cost._from(native.inside),
            _native=native,
        )

    def _summary(self) -> str:
        seconds = _dssync.format_duration(self.cost.seconds_per_iteration)
        regions = f" in {len(self.replicas)} exact regions" if self.replicas else ""
        return (
            f"{len(self.names)} workers{regions}, a cycle of {len(self.rounds)} rounds, {self.shards} shards, "
            f"S = {self.mixing.steady_disagreement:.3g}, {seconds} per iteration, "
            f"bottleneck {self.cost.bottleneck or 'none'}"
        )

    def __repr__(self) -> str:
        width = max(len(round.label) for round in self.rounds)
        lines = [f"Plan({self._summary()})"]
        for number, round in enumerate(self.rounds, 1):
            groups = " | ".join(" ".join(self.names[rank] for rank in group) for group in round.groups if len(group) > 1)
            lines.append(f"  {number:2}  {round.label:{width}}  {groups}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A picture for notebooks: a row per round, a square per worker, a colour per group."""
        size, left = 18, 10 + 7 * max(len(round.label) for round in self.rounds)
        parts = []
        for row, round in enumerate(self.rounds):
            y = (row + 1) * size
            parts.append(f'<text x="0" y="{y + 13}">{html.escape(round.label)}</text>')
            groups = [group for group in round.groups if len(group) > 1]
            colours = {rank: f"hsl({360 * number // len(groups)} 60% 60%)" for number, group in enumerate(groups) for rank in group}
            for rank, name in enumerate(self.names):
                parts.append(
                    f'<rect x="{left + rank * size}" y="{y}" width="{size - 2}" height="{size - 2}" '
                    f'fill="{colours.get(rank, "#ddd")}"><title>{html.escape(name)}</title></rect>'
                )
        width, height = left + len(self.names) * size, (len(self.rounds) + 1) * size
        return (
            f"<div>{html.escape(self._summary())}</div>"
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'font-family="sans-serif" font-size="12" fill="currentColor">{"".join(parts)}</svg>'
        )


def plan(
    topology: AnyTopology,
    bytes: Union[int, float, str] = "8MB",
    disagreement: float = DEFAULT_DISAGREEMENT,
    group_limit: int = 0,
    published: bool = False,
    exact_inside: str = "none",
) -> Plan:
    """The fastest plan for this network whose disagreement S is at most `disagreement`.

    `bytes` is the size of the parameters, a number or text such as "8MB"; `group_limit` the largest group allowed (0: any);
    `published` asks for the paper's schedule instead. `exact_inside`: gradients are averaged in every iteration inside each
    "host", "rack" or "site" (or level of the network, by number), and parameters between these; "auto": hosts, and more where
    that costs no time. Raises InputError where the group limit allows no such plan.
    """
    network = as_topology(topology)._native
    size = float(_dssync.parse_bytes(bytes) if isinstance(bytes, str) else bytes)
    return Plan._from(_dssync.make_plan(network, size, disagreement, group_limit, published, exact_inside))
