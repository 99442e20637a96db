"""What transformer.py and transformer_ddp.py share: a text, a model that learns to continue it, and how well it does.

The text is the sources of Python's standard library, as bytes; every twentieth file is held out. Windows are drawn at random, by
every rank for itself, and are the same in both scripts.
"""

import argparse
import json
import math
import pathlib
import sysconfig
import time

import torch
import torch.distributed as dist
from torch import nn

SYMBOLS = 128  # the last one is any byte that is not ASCII
CONTEXT = 64


class Block(nn.Module):
    """Attention, then two dense layers; each behind a norm and added to its input."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.dense_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ask, self.answer = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dense = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, values, later):
        examples, context, width = values.shape
        parts = self.ask(self.attention_norm(values)).view(examples, context, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        weights = (query @ key.transpose(-1, -2) / math.sqrt(width // self.heads) + later).softmax(-1)
        values = values + self.answer((weights @ value).transpose(1, 2).reshape(examples, context, width))
        return values + self.dense(self.dense_norm(values))


class Transformer(nn.Module):
    """A decoder: scores for the byte after each byte of a window. 121 k parameters."""

    def __init__(self, width=64, layers=2, heads=4):
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, width)
        self.positions = nn.Parameter(0.01 * torch.randn(CONTEXT, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, SYMBOLS)
        nn.init.normal_(self.symbols.weight, std=0.05)
        self.register_buffer("later", torch.full((CONTEXT, CONTEXT), -math.inf).triu(1), persistent=False)

    def forward(self, windows):
        values = self.symbols(windows) + self.positions
        for block in self.blocks:
            values = block(values, self.later)
        return self.scores(self.norm(values))


class Text:
    """The text for training, and the one that is held out."""

    def __init__(self, seed):
        files = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
        self.train, self.held_out = (
            torch.frombuffer(bytearray(b"".join(file.read_bytes() for file in part)), dtype=torch.uint8).clamp_(max=SYMBOLS - 1).long()
            for part in ([file for number, file in enumerate(files) if number % 20], files[::20]))
        self.generator = torch.Generator().manual_seed(1000 * seed + dist.get_rank())

    def batch(self, examples=4):
        """This rank's next windows, and the bytes to tell from them."""
        starts = torch.randint(len(self.train) - CONTEXT, (examples, 1), generator=self.generator)
        windows = self.train[starts + torch.arange(CONTEXT + 1)]
        return windows[:, :-1], windows[:, 1:]

    @torch.no_grad()
    def held_out_loss(self, model):
        """Nats per byte: every rank tells its part of the held-out text with the model that it has, and all are averaged."""
        count = (len(self.held_out) - 1) // CONTEXT // dist.get_world_size() * dist.get_world_size()
        own = slice(dist.get_rank(), count, dist.get_world_size())
        inputs, targets = (self.held_out[shift:shift + count * CONTEXT].view(count, CONTEXT)[own] for shift in (0, 1))
        total = sum(loss_of(model, some, others) * len(some) for some, others in zip(inputs.split(64), targets.split(64)))
        dist.all_reduce(total)
        return total.item() / count


def loss_of(model, inputs, targets):
    return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def schedule(optimizer, steps, warmup=50):
    """A linear warm-up, then a cosine down to zero."""
    def factor(step):
        done = max(0, step + 1 - warmup) / max(1, steps - warmup)
        return min(1, (step + 1) / warmup) * (1 + math.cos(math.pi * done)) / 2
    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def options_of(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", default="python/examples/network.yaml", help="the network, with a worker for each rank")
    parser.add_argument("--disagreement", type=float, default=0.25, help="for dssync: how far replicas may stay apart")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--evaluate-every", type=int, default=100, metavar="STEPS")
    parser.add_argument("--seed", type=int, default=0, help="of the model and of the windows")
    return parser.parse_args()


class Report:
    """Collects what the held-out text says, and prints one JSON object at the end, on rank 0."""

    def __init__(self, options):
        self.options = options
        self.losses = {}
        self.start = time.perf_counter()

    def add(self, step, text, model):
        if step % self.options.evaluate_every == 0 or step == self.options.steps:
            self.losses[step] = round(text.held_out_loss(model), 4)

    def show(self):
        if dist.get_rank() == 0:
            seconds = round(time.perf_counter() - self.start, 1)
            print(json.dumps({"seed": self.options.seed, "held_out_loss": self.losses, "seconds": seconds}), flush=True)
