"""A character-level transformer that learns to write like the pages in docs/, in mixed precision:

    torchrun --nproc-per-node 4 python/examples/characters.py

Shows AdamW with two parameter groups, tied weights, gradient clipping, accumulated gradients, autocast and checkpoints.
"""

import argparse
import math
import pathlib

import torch
import torch.distributed as dist
from torch import nn

import dssync

HERE = pathlib.Path(__file__).resolve().parent


class Transformer(nn.Module):
    """Predicts the next character from those before it. The last layer is the embedding, transposed."""

    def __init__(self, characters, context, width=48, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.position = nn.Parameter(torch.zeros(context, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.output = nn.Linear(width, characters, bias=False)
        self.output.weight = self.embedding.weight
        nn.init.normal_(self.embedding.weight, std=0.05)
        self.register_buffer("mask", torch.triu(torch.full((context, context), -math.inf), 1), persistent=False)

    def forward(self, characters):
        length = characters.shape[1]
        hidden = self.embedding(characters) + self.position[:length]
        return self.output(self.body(hidden, mask=self.mask[:length, :length]))


def batch(text, context, size):
    starts = torch.randint(len(text) - context - 1, (size, 1))
    window = text[starts + torch.arange(context + 1)]
    return window[:, :-1], window[:, 1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--micro-batches", type=int, default=2, help="whose gradients a step adds up")
    parser.add_argument("--checkpoint", type=pathlib.Path, help="to write at the end, and to start from where it exists")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    words = "\n".join(page.read_text() for page in sorted((HERE.parents[1] / "docs").glob("*.md")))
    alphabet = sorted(set(words))
    number_of = {character: number for number, character in enumerate(alphabet)}
    text = torch.tensor([number_of[character] for character in words])

    torch.manual_seed(dist.get_rank())
    model = Transformer(len(alphabet), context=64)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=3e-3)
    saved = torch.load(options.checkpoint) if options.checkpoint and options.checkpoint.exists() else None
    if saved:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])

    with dssync.DivideShuffle(model, optimizer, topology=HERE / "network.yaml") as sync:
        if saved:
            sync.load_state_dict(saved["sync"])
        for _ in range(options.steps):
            total = 0.0
            for _ in range(options.micro_batches):
                inputs, targets = batch(text, 64, 8)
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1).float(), targets.flatten())
                (loss / options.micro_batches).backward()
                total += loss.item() / options.micro_batches
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            sync.step()
            optimizer.zero_grad()
    # Here all ranks have the same model.
    if dist.get_rank() == 0:
        print(f"loss {total:.3f} after {sync.metrics['iteration']} steps (guessing: {math.log(len(alphabet)):.3f})", flush=True)
        if options.checkpoint:
            parts = {"model": model, "optimizer": optimizer, "sync": sync}
            torch.save({name: part.state_dict() for name, part in parts.items()}, options.checkpoint)
    dist.barrier()


if __name__ == "__main__":
    main()
