"""A small ResNet on Fashion-MNIST, with dssync or (--ddp) with DistributedDataParallel:

    torchrun --nproc-per-node 4 python/examples/fashion_mnist.py --topology python/examples/network.yaml

Every rank trains on its own part of the images. The last line on rank 0 is a JSON object with the speed and the accuracy.
"""

import argparse
import gzip
import json
import pathlib
import time

import torch
import torch.distributed as dist
from torch import nn

import dssync


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity() if inputs == outputs and stride == 1 else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, images):
        return torch.relu(self.body(images) + self.shortcut(images))


def resnet(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10))


def read(folder, part):
    """Images as floats around zero, and labels."""
    def bytes_of(name, header):
        return torch.frombuffer(bytearray(gzip.decompress((folder / name).read_bytes())[header:]), dtype=torch.uint8)

    images = bytes_of(f"{part}-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28)
    return images.float().sub_(73).div_(90), bytes_of(f"{part}-labels-idx1-ubyte.gz", 8).long()


@torch.no_grad()
def accuracy(model, images, labels):
    """On all ranks together, each with its part."""
    model.eval()
    rank, size = dist.get_rank(), dist.get_world_size()
    right = sum((model(images[i::size][j:j + 500]).argmax(1) == labels[i::size][j:j + 500]).sum()
                for i in [rank] for j in range(0, len(images[i::size]), 500))
    dist.all_reduce(right)
    model.train()
    return right.item() / len(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", help="the network, for dssync")
    parser.add_argument("--ddp", action="store_true", help="DistributedDataParallel instead of dssync")
    parser.add_argument("--disagreement", type=float, default=0.5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32, help="images of each rank in a step")
    parser.add_argument("--width", type=int, default=8, help="channels of the first layers")
    parser.add_argument("--rate", type=float, default=0.05, help="the learning rate")
    parser.add_argument("--seed", type=int, default=0, help="of the model and of the choice of images")
    parser.add_argument("--test-images", type=int, default=10000)
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    images, labels = (tensor[rank::size] for tensor in read(options.data, "train"))
    torch.manual_seed(1000 * options.seed + rank)
    model = resnet(options.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    if options.ddp:
        model = nn.parallel.DistributedDataParallel(model)
    else:
        sync = dssync.DivideShuffle(model, optimizer, topology=options.topology, disagreement=options.disagreement)
    dist.barrier()
    start = time.perf_counter()
    for _ in range(options.steps):
        chosen = torch.randint(len(images), (options.batch,))
        loss = nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step() if options.ddp else sync.step()
        scheduler.step()
    if not options.ddp:
        sync.consolidate()
    dist.barrier()
    seconds = time.perf_counter() - start
    test = [tensor[: options.test_images] for tensor in read(options.data, "t10k")]
    found = accuracy(model, *test)
    if rank == 0:
        print(json.dumps({
            "method": "ddp" if options.ddp else "dssync", "seconds": round(seconds, 2), "test_accuracy": found,
            "images_per_second": round(options.steps * options.batch * size / seconds, 1),
            "parameter_bytes": 4 * sum(p.numel() for p in model.parameters())}), flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
