#!/usr/bin/env python3
"""Replicas of a small transformer in one process: what a scheme of synchronization costs in loss, without a network.

    bench/replicas.py [--steps 600] [--seeds 10,11] [--format table|json] [--keep FILE] SCHEME...

A scheme is a list of key=value, separated by commas; what it leaves out has the default of `Scheme` below (`--help` lists all).

    bench/replicas.py method=bsp correction=none correction=block64 correction=block64,rounds=iiiiiiia

Every replica is a decoder over bytes (121 k parameters). The text is what every machine with Python has: the sources of its standard
library. All schemes see the same batches in the same order. The loss is that of the mean model on held-out text, in nats per byte.
A step of eight replicas takes 60 ms on one core, a run of 600 steps 40 s. Needs PyTorch 2 and nothing else.
"""

import argparse
import dataclasses
import glob
import json
import math
import os
import pathlib
import statistics
import sys
import sysconfig
import time

import torch
import torch.nn.functional as functional

CONTEXT, WIDTH, LAYERS, HEADS, SYMBOLS = 64, 64, 2, 4, 128
HELD_OUT = 200_000  # bytes
WINDOWS = 512  # of held-out text in an evaluation
WARM_UP = 50  # steps
EPSILON = 1e-8


@dataclasses.dataclass(frozen=True)
class Scheme:
    """One way to train. The comment behind a field is its line in `--help`."""

    method: str = "ds"  # bsp: gradients are averaged in every step; ds: parameters are, as the rounds say
    workers: int = 8  # replicas
    rounds: str = "irppa"  # a letter a round: i nobody, p pairs, r racks of four, a all; shards are interleaved
    plan: str = ""  # a file of `dssync plan --format json`: its rounds instead
    exact: int = 0  # so many first steps end with an exact average
    combine: bool = False  # adapt-while-combine: average the start of the step, add the change afterwards
    state: str = "local"  # Adam's moments: local, averaged with the parameters, rotating (a part in each cycle), inferred (docs/noise.md)
    parts: int = 8  # of the state, if it rotates
    correction: str = "none"  # of the second moment: none, element, blockN (N elements), row, tensor, model, truth (that of the mean gradient)
    turns: int = 1  # correct one block in so many in each step, with so many times the weight
    clip: float = 1.0  # clip gradients to this norm; 0: never
    norm: str = "own"  # whose: own; of the mean gradient by ratio (own, times the root of the noise ratio), difference (own^2 - the noise
    # in Adam's moments), measured (own^2 - the noise of gradients before clipping), truth
    batch: int = 4  # sequences of 64 bytes per worker and step
    rate: float = 3e-3  # learning rate, after the warm-up and before the cosine
    beta1: float = 0.9  # of AdamW
    beta2: float = 0.95  # of AdamW
    decay: float = 0.05  # of weights

    @staticmethod
    def parse(text):
        fields = {field.name: field for field in dataclasses.fields(Scheme)}
        values = {}
        for pair in filter(None, text.split(",")):
            key, separator, value = pair.partition("=")
            if not separator or key not in fields:
                raise SystemExit(f"replicas: expected key=value with one of {', '.join(fields)}, found '{pair}'")
            kind = type(fields[key].default)
            values[key] = value in ("1", "true", "yes") if kind is bool else kind(value)
        return Scheme(**values)


# ---------------------------------------------------------------------------------------------------------------------------------
# Text and model. The parameters of all replicas are the rows of one matrix; products are batched over the replicas.


def text():
    """Training and held-out bytes. Bytes above 127 become 127."""
    root = sysconfig.get_paths()["stdlib"]
    files = [file for folder in ("", "email", "asyncio") for file in sorted(glob.glob(os.path.join(root, folder, "*.py")))]
    data = bytearray(b"".join(pathlib.Path(file).read_bytes() for file in files))
    data = torch.frombuffer(data, dtype=torch.uint8).long().clamp(max=SYMBOLS - 1)
    return data[:-HELD_OUT], data[-HELD_OUT:]


def windows(data, shape, generator):
    """Random windows of CONTEXT bytes and the byte after each of them: shape x (CONTEXT + 1)."""
    starts = torch.randint(len(data) - CONTEXT - 1, (*shape, 1), generator=generator)
    return data[starts + torch.arange(CONTEXT + 1)]


def parameter_shapes():
    shapes = {"embedding": (SYMBOLS, WIDTH), "position": (CONTEXT, WIDTH)}
    for layer in range(LAYERS):
        linear = {"qkv": (3 * WIDTH, WIDTH), "join": (WIDTH, WIDTH), "up": (4 * WIDTH, WIDTH), "down": (WIDTH, 4 * WIDTH)}
        for name in ("before", "after"):
            shapes |= {f"{name}{layer}.scale": (WIDTH,), f"{name}{layer}.bias": (WIDTH,)}
        for name, shape in linear.items():
            shapes |= {f"{name}{layer}.weight": shape, f"{name}{layer}.bias": shape[:1]}
    return shapes | {"last.scale": (WIDTH,), "last.bias": (WIDTH,), "head.weight": (SYMBOLS, WIDTH), "head.bias": (SYMBOLS,)}


SHAPES = parameter_shapes()
SIZES = [math.prod(shape) for shape in SHAPES.values()]
PARAMETERS = sum(SIZES)


def initial_parameters(seed):
    generator = torch.Generator().manual_seed(seed)

    def initial(name, shape):
        if name == "embedding":
            return 0.05 * torch.randn(shape, generator=generator)
        if name.endswith(".weight"):
            return (2 * torch.rand(shape, generator=generator) - 1) / math.sqrt(shape[1])
        return torch.ones(shape) if name.endswith(".scale") else torch.zeros(shape)

    return torch.cat([initial(name, shape).flatten() for name, shape in SHAPES.items()])


def losses(rows, batch):
    """The loss of each replica on its own batch (replicas x sequences x (CONTEXT + 1))."""
    count, sequences, _ = batch.shape
    value = {name: part.view(count, *shape) for (name, shape), part in zip(SHAPES.items(), rows.split(SIZES, 1))}

    def linear(name, x):
        return torch.baddbmm(value[name + ".bias"].unsqueeze(1), x, value[name + ".weight"].transpose(1, 2))

    def norm(name, x):
        return functional.layer_norm(x, (WIDTH,)) * value[name + ".scale"].unsqueeze(1) + value[name + ".bias"].unsqueeze(1)

    def attend(layer, x):
        heads = linear(f"qkv{layer}", x).view(count * sequences, CONTEXT, 3, HEADS, WIDTH // HEADS)
        query, key, content = heads.permute(2, 0, 3, 1, 4).unbind(0)
        weight = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + future, -1)
        return linear(f"join{layer}", (weight @ content).transpose(1, 2).reshape(count, sequences * CONTEXT, WIDTH))

    future = torch.triu(torch.full((CONTEXT, CONTEXT), -1e9), 1)
    own_table = (torch.arange(count) * SYMBOLS).view(count, 1, 1)
    x = functional.embedding(batch[..., :-1] + own_table, value["embedding"].reshape(count * SYMBOLS, WIDTH))
    x = (x + value["position"].unsqueeze(1)).view(count, sequences * CONTEXT, WIDTH)
    for layer in range(LAYERS):
        x = x + attend(layer, norm(f"before{layer}", x))
        x = x + linear(f"down{layer}", functional.gelu(linear(f"up{layer}", norm(f"after{layer}", x))))
    scores = linear("head", norm("last", x))
    return functional.cross_entropy(scores.view(-1, SYMBOLS), batch[..., 1:].reshape(-1), reduction="none").view(count, -1).mean(1)


def gradients(rows, batch):
    rows = rows.detach().requires_grad_(True)
    losses(rows, batch).sum().backward()
    return rows.grad


# ---------------------------------------------------------------------------------------------------------------------------------
# Rounds and disagreement.


def groups_of(letter, workers, pairs_before):
    if letter == "i":
        return []
    if letter == "a":
        return [list(range(workers))]
    if letter == "r":
        return [list(range(first, first + 4)) for first in range(0, workers, 4)]
    if letter == "p":  # neighbours and neighbours but one in turn
        far = 2 if pairs_before % 2 == 0 else 1
        return [[i, i + far] for i in range(workers) if i // far % 2 == 0]
    raise SystemExit(f"replicas: a round is one of i, p, r, a; found '{letter}'")


def matrix(groups, workers):
    """The averaging matrix of a round."""
    mixing = torch.eye(workers)
    for group in groups:
        for worker in group:
            mixing[worker] = 0
            mixing[worker, group] = 1 / len(group)
    return mixing


def rounds_of(scheme):
    if scheme.plan:
        rounds = json.loads(pathlib.Path(scheme.plan).read_text())["rounds"]
        return [matrix([group for group in entry["groups"] if len(group) > 1], scheme.workers) for entry in rounds]
    letters = scheme.rounds
    return [matrix(groups_of(letter, scheme.workers, letters[:k].count("p")), scheme.workers) for k, letter in enumerate(letters)]


def steady_disagreement(rounds):
    """S of docs/mixing.md, by iterating the covariance until it repeats."""
    workers = len(rounds[0])
    noise = torch.eye(workers) - 1 / workers
    covariance = torch.zeros(workers, workers)
    for _ in range(60):
        traces = []
        for mixing in rounds:
            covariance = mixing @ (covariance + noise) @ mixing.T
            traces.append(torch.trace(noise @ covariance).item() / workers)
    return statistics.mean(traces)


def share_of_last(steps, beta):
    """How much of the last difference between two momentums lies in the sum of the last `steps` ones, which began at none: by regression."""
    last = [(1 - beta) * beta ** (steps - 1 - j) for j in range(steps)]
    total = [1 - beta ** (steps - j) for j in range(steps)]
    return sum(a * b for a, b in zip(last, total)) / sum(b * b for b in total)


class Mixer:
    """Averages shards of the replicas' rows by the rounds, and of Adam's moments what the scheme says."""

    def __init__(self, scheme):
        self.scheme = scheme
        self.rounds = rounds_of(scheme)
        self.idle = [bool((mixing == torch.eye(scheme.workers)).all()) for mixing in self.rounds]
        self.bounds = [PARAMETERS * k // len(self.rounds) for k in range(len(self.rounds) + 1)]
        self.common = [-1] * len(self.rounds)  # when everyone last averaged a shard
        self.disagreement = steady_disagreement(self.rounds) + (1 - 1 / scheme.workers if scheme.combine else 0)

    def mix(self, step, rows, moments, per_move, before):
        """In place. A row that moves by 1 in a step had a first moment of -per_move. `before`: rows and moments at the start of the
        step, for adapt-while-combine; else None."""
        count = len(self.rounds)
        for shard in range(count):
            k = (step + shard) % count
            if self.idle[k]:
                continue
            first, last = self.bounds[shard], self.bounds[shard + 1]
            columns = slice(first, last)
            alone = rows[:, columns].clone() if self.scheme.state == "inferred" else None
            self._average(self.rounds[k], columns, rows, before and before[0])
            if alone is not None:
                share = share_of_last(step - self.common[shard], self.scheme.beta1)
                moments[0][:, columns] -= share * (rows[:, columns] - alone) * per_move[:, columns]
            if bool((self.rounds[k] > 0).all()):
                self.common[shard] = step
            part = self._state_slice((step + shard) // count, first, last)
            for index, moment in enumerate(moments if part else ()):
                self._average(self.rounds[k], part, moment, before and before[1][index])
        if before:
            moments[1].clamp_min_(0)

    def _state_slice(self, cycle, first, last):
        if self.scheme.state in ("local", "inferred"):
            return None
        if self.scheme.state == "averaged":
            return slice(first, last)
        part, parts = cycle % self.scheme.parts, self.scheme.parts
        return slice(first + (last - first) * part // parts, first + (last - first) * (part + 1) // parts)

    @staticmethod
    def _average(mixing, columns, rows, before):
        if before is None:
            rows[:, columns] = mixing @ rows[:, columns]
        else:
            rows[:, columns] += mixing @ before[:, columns] - before[:, columns]


# ---------------------------------------------------------------------------------------------------------------------------------
# Adam and what corrects it. docs/noise.md has the formulas.


def pooled_sum(values, pool):
    """The sum over each element's pool, for every element."""
    count = len(values)
    if pool == "model":
        return values.sum(1, keepdim=True).expand_as(values)
    if pool.startswith("block"):
        size = int(pool.removeprefix("block"))
        blocks = functional.pad(values, (0, -PARAMETERS % size)).view(count, -1, size)
        return blocks.sum(-1, keepdim=True).expand_as(blocks).reshape(count, -1)[:, :PARAMETERS]
    if pool not in ("tensor", "row"):
        raise SystemExit(f"replicas: a correction is one of none, element, blockN, row, tensor, model, truth; found '{pool}'")
    sums = []
    for shape, part in zip(SHAPES.values(), values.split(SIZES, 1)):
        part = part.view(count, -1, shape[-1] if pool == "row" else part.shape[1])
        sums.append(part.sum(-1, keepdim=True).expand_as(part).reshape(count, -1))
    return torch.cat(sums, 1)


class Adam:
    """AdamW of all replicas, with clipping and the corrected second moment of the scheme. Holds the moments."""

    def __init__(self, scheme, rows):
        self.scheme = scheme
        self.moments = [torch.zeros_like(rows), torch.zeros_like(rows)]
        self.true_second = torch.zeros(rows.shape[1])  # of the mean gradient, which no worker knows
        self.noise_ratio = 1 / scheme.workers  # E[v of the mean gradient] / E[v of a worker's gradient], as last estimated
        self.noise = None  # the sum of the variances of a worker's gradient
        self.unclipped = [torch.zeros_like(rows), torch.zeros_like(rows)] if scheme.norm == "measured" else None
        self.steps = 0
        self.per_move = None  # what of the first moment stands behind a move by 1 in the last step

    def step(self, rows, gradient, rate):
        """Moves `rows` in place."""
        scheme = self.scheme
        mean = gradient.mean(0)
        mean_norm = mean.norm()
        if scheme.clip:
            gradient = gradient * (scheme.clip / self._norm(gradient, mean_norm)).clamp(max=1)
            mean = mean * (scheme.clip / mean_norm).clamp(max=1)
        self.steps += 1
        first, second = self.moments
        first.lerp_(gradient, 1 - scheme.beta1)
        second.mul_(scheme.beta2).addcmul_(gradient, gradient, value=1 - scheme.beta2)
        self.true_second.mul_(scheme.beta2).addcmul_(mean, mean, value=1 - scheme.beta2)
        first = first / (1 - scheme.beta1**self.steps)
        second = second / (1 - scheme.beta2**self.steps)
        divisor = second.sqrt() + EPSILON
        update = first / divisor
        if scheme.method == "ds" and scheme.correction != "none":
            divisor = self._corrected(first, second).sqrt() + EPSILON
            update = self._in_turns(update, first / divisor)
        self.per_move = divisor * ((1 - scheme.beta1**self.steps) / rate)
        rows.mul_(1 - rate * scheme.decay).sub_(rate * update)

    def _norm(self, gradient, mean_norm):
        """What to clip by, for each replica."""
        own = gradient.norm(dim=1, keepdim=True)
        kind, workers = self.scheme.norm, self.scheme.workers
        if kind == "own" or self.scheme.method == "bsp" or self.scheme.correction == "none":
            return own
        if kind == "truth":
            return mean_norm.expand_as(own)
        if kind == "ratio":
            return own * self.noise_ratio**0.5
        if kind not in ("difference", "measured"):
            raise SystemExit(f"replicas: a norm is one of own, ratio, difference, measured, truth; found '{kind}'")
        noise = self._measured_noise(gradient) if kind == "measured" else 0 if self.noise is None else self.noise
        return torch.maximum(own.square() - (1 - 1 / workers) * noise, own.square() / workers).sqrt()

    def _measured_noise(self, gradient):
        """The sum of the variances of gradients before clipping, over about the last ten steps."""
        mean, square = self.unclipped
        mean.lerp_(gradient, 0.1)
        square.lerp_(gradient.square(), 0.1)
        old = 0.9 ** (self.steps + 1)
        kappa = 0.1 / 1.9 * (1 + old) / (1 - old)
        if self.steps == 0:
            return 0
        return (square / (1 - old) - (mean / (1 - old)).square()).sum(1, keepdim=True).clamp_min(0) / (1 - kappa)

    def _corrected(self, first, second):
        """The second moment that the mean gradient would have, as estimated from a worker's moments."""
        scheme = self.scheme
        power = scheme.beta1**self.steps
        # The sum of the squared weights with which gradients enter `first`. In the first step nothing tells noise from signal.
        kappa = min(0.9, (1 - scheme.beta1) / (1 + scheme.beta1) * (1 + power) / (1 - power))
        others = 1 - 1 / scheme.workers
        signal = (first.square() - kappa * second) / (1 - kappa)  # without bias: the mean's square; may be negative
        total = second.sum(1, keepdim=True).clamp_min(1e-30)
        self.noise_ratio = 1 / scheme.workers + others * (signal.sum(1, keepdim=True) / total).clamp(0, 1)
        self.noise = (second - first.square()).clamp_min(0).sum(1, keepdim=True) / (1 - kappa)
        if scheme.correction == "truth":
            return (self.true_second / (1 - scheme.beta2**self.steps)).expand_as(second)
        if scheme.correction == "element":
            return second / scheme.workers + others * signal.clamp_min(0)
        share = pooled_sum(signal, scheme.correction) / pooled_sum(second, scheme.correction).clamp_min(1e-30)
        return second * (1 / scheme.workers + others * share.clamp(0, 1))

    def _in_turns(self, plain, corrected):
        turns = self.scheme.turns
        if turns == 1:
            return corrected
        ours = torch.arange(PARAMETERS) // 64 % turns == self.steps % turns
        return torch.where(ours, plain + turns * (corrected - plain), plain)


# ---------------------------------------------------------------------------------------------------------------------------------
# Runs and what is printed.


def train(scheme, steps, every, seed, data):
    """The losses by step, the rounds' S and the relative distance between the replicas at the end."""
    training, held_out = data
    bsp = scheme.method == "bsp"
    rows = initial_parameters(seed).repeat(1 if bsp else scheme.workers, 1)
    adam, mixer = Adam(scheme, rows), None if bsp else Mixer(scheme)
    generator = torch.Generator().manual_seed(1000 + seed)
    examination = windows(held_out, (1, WINDOWS), torch.Generator().manual_seed(99))
    by_step = {}
    for step in range(steps):
        rate = scheme.rate * min(1, (step + 1) / WARM_UP) * (0.1 + 0.45 * (1 + math.cos(math.pi * step / steps)))
        batch = windows(training, (scheme.workers, scheme.batch), generator)
        gradient = gradients(rows, batch.view(1, -1, CONTEXT + 1) if bsp else batch)
        before = (rows.clone(), [moment.clone() for moment in adam.moments]) if scheme.combine else None
        adam.step(rows, gradient, rate)
        if mixer and step < scheme.exact:
            rows[:] = rows.mean(0)
            mixer.common = [step] * len(mixer.common)
        elif mixer:
            mixer.mix(step, rows, adam.moments, adam.per_move, before)
        if (step + 1) % every == 0 or step + 1 == steps:
            with torch.no_grad():
                by_step[step + 1] = losses(rows.mean(0, keepdim=True), examination).item()
    mean = rows.mean(0)
    distance = ((rows - mean).square().sum(1).mean() / mean.square().sum()).sqrt().item()
    return {"losses": by_step, "disagreement": mixer.disagreement if mixer else 0.0, "distance": distance}


class Runs:
    """Runs of `train`, each once; kept in a file of JSON lines."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.data = text()
        self.file = pathlib.Path(arguments.keep) if arguments.keep else None
        lines = self.file.read_text().splitlines() if self.file and self.file.exists() else []
        self.known = {json.dumps(entry["settings"], sort_keys=True): entry for entry in map(json.loads, lines)}

    def result(self, label, seed):
        scheme = Scheme.parse(label)
        settings = {"steps": self.arguments.steps, "evaluate_every": self.arguments.evaluate_every, "seed": seed,
                    **dataclasses.asdict(scheme)}
        key = json.dumps(settings, sort_keys=True)
        if key not in self.known:
            print(f"running: {label}, seed {seed}", file=sys.stderr, flush=True)
            began = time.monotonic()
            outcome = train(scheme, self.arguments.steps, self.arguments.evaluate_every, seed, self.data)
            outcome["losses"] = {str(step): round(loss, 4) for step, loss in outcome["losses"].items()}
            outcome |= {name: round(outcome[name], 4) for name in ("disagreement", "distance")}
            self.known[key] = {"scheme": label, **outcome, "seconds": round(time.monotonic() - began, 1), "settings": settings}
            if self.file:
                with self.file.open("a") as out:
                    print(json.dumps(self.known[key]), file=out)
        return self.known[key]


def row(label, results, first):
    """A row of the table: means over the seeds; differences to the results of the first scheme, worst at an evaluation after step 100."""
    ends = [list(result["losses"].values())[-1] for result in results]
    gaps = [statistics.mean(result["losses"][step] - base["losses"][step] for result, base in zip(results, first))
            for step in results[0]["losses"]]
    late = [gap for step, gap in zip(results[0]["losses"], gaps) if int(step) > 100] or gaps
    spread = " ".join(f"{end:.3f}" for end in ends)
    return f"| `{label}` | {results[0]['disagreement']:.3f} | {statistics.mean(ends):.3f} | {spread} | {gaps[-1]:+.3f} | {max(late):+.3f} |"


def arguments_of(words):
    source = pathlib.Path(__file__).read_text().split("class Scheme:")[1].split("@staticmethod")[0]
    comments = [line.split("# ")[1] for line in source.replace("\n    # ", " ").splitlines() if "  # " in line]
    keys = [f"  {field.name:<11}{text} (default {field.default!r})" for field, text in zip(dataclasses.fields(Scheme), comments)]
    parser = argparse.ArgumentParser(description=__doc__ + "\nkeys of a scheme:\n" + "\n".join(keys),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("schemes", nargs="+", metavar="SCHEME", help="key=value,key=value,...; differences are to the first one")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--evaluate-every", type=int, default=50, metavar="STEPS")
    parser.add_argument("--seeds", type=lambda value: [int(seed) for seed in value.split(",")], default=[10, 11], metavar="SEED,...")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch; more than one is hardly faster")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--keep", metavar="FILE", help="keep finished runs in FILE, JSON lines, and do not repeat them")
    return parser.parse_args(words)


def main(words):
    arguments = arguments_of(words)
    torch.set_num_threads(arguments.threads)
    for label in arguments.schemes:
        Scheme.parse(label)
    runs, first = Runs(arguments), None
    if arguments.format == "table":
        print("| scheme | S | loss | of each seed | to the first | at most, after step 100 |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    for label in arguments.schemes:
        results = [runs.result(label, seed) for seed in arguments.seeds]
        first = first or results
        if arguments.format == "table":
            print(row(label, results, first), flush=True)
        else:
            for result in results:
                print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
