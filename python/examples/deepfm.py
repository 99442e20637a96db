"""DeepFM on clicks whose structure is known: every field of an impression has a weight, and every pair of fields interacts.

    torchrun --nproc-per-node 4 python/examples/deepfm.py

Prints the area under the ROC curve of the model beside that of the truth, which no model can beat.
"""

import argparse
import pathlib

import torch
import torch.distributed as dist
from torch import nn

import dssync

FIELDS, VALUES, RANK = 8, 30, 4


def interactions(vectors):
    """The sum of the products of all pairs, as in a factorization machine."""
    return 0.5 * (vectors.sum(1).square() - vectors.square().sum(1)).sum(1)


class DeepFM(nn.Module):
    """Weights, pairs, and a network on top of the same embeddings."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Embedding(FIELDS * VALUES, 1)
        self.vectors = nn.Embedding(FIELDS * VALUES, RANK)
        self.deep = nn.Sequential(nn.Linear(FIELDS * RANK, 32), nn.ReLU(), nn.Linear(32, 1))
        nn.init.normal_(self.vectors.weight, std=0.1)

    def forward(self, fields):
        indexes = fields + VALUES * torch.arange(FIELDS)
        vectors = self.vectors(indexes)
        return self.weight(indexes).sum((1, 2)) + interactions(vectors) + self.deep(vectors.flatten(1)).squeeze(1)


class Truth:
    """Where the clicks come from; the same on all ranks."""

    def __init__(self):
        source = torch.Generator().manual_seed(0)
        self.weight = 0.4 * torch.randn(FIELDS, VALUES, generator=source)
        self.vectors = 0.35 * torch.randn(FIELDS, VALUES, RANK, generator=source)

    def logits(self, fields):
        field = torch.arange(FIELDS)
        return self.weight[field, fields].sum(1) + interactions(self.vectors[field, fields]) - 1

    def impressions(self, count):
        fields = torch.randint(VALUES, (count, FIELDS))
        return fields, torch.bernoulli(torch.sigmoid(self.logits(fields)))


def area_under_curve(scores, clicks):
    ranks = torch.empty(len(scores)).scatter_(0, scores.argsort(), torch.arange(1.0, len(scores) + 1))
    positive = clicks.sum()
    return ((ranks[clicks > 0].double().sum() - positive * (positive + 1) / 2) / (positive * (len(clicks) - positive))).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600)
    options = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    truth, model = Truth(), DeepFM()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    network = pathlib.Path(__file__).with_name("network.yaml")
    with dssync.DivideShuffle(model, optimizer, topology=network) as sync:
        for _ in range(options.steps):
            fields, clicks = truth.impressions(256)
            loss = nn.functional.binary_cross_entropy_with_logits(model(fields), clicks)
            optimizer.zero_grad()
            loss.backward()
            sync.step()
    if dist.get_rank() == 0:
        fields, clicks = truth.impressions(20000)
        with torch.no_grad():
            found, best = area_under_curve(model(fields), clicks), area_under_curve(truth.logits(fields), clicks)
        print(f"area under the curve {found:.3f}, of the truth {best:.3f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
