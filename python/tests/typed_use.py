"""How a typed program uses the package: checked by mypy, not run."""

from typing import List

import torch

import dssync


def use(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> float:
    plan: dssync.Plan = dssync.plan("network.yaml", bytes="8MB", disagreement=0.5)
    labels: List[str] = [round.label for round in plan.rounds]
    seconds: float = plan.cost.seconds_per_iteration + len(labels) * plan.mixing.steady_disagreement
    with dssync.DivideShuffle(model, optimizer, topology=dssync.Topology("network.yaml"), plan=plan) as sync:
        sync.step()
        seconds += sync.metrics["sync_seconds"]
        sync.load_state_dict(sync.state_dict())
    attached = dssync.DivideShuffle(model, [optimizer], topology={"hosts": [{"name": "h[0-3]"}]}, attach=True, overlap="layered")
    seconds += attached.consolidate(also=[model], state=True) + dssync.Topology.flat(8, nic="10Gbps").workers
    dssync.DivideShuffleAverager("network.yaml").average_parameters(model.parameters())
    return seconds
