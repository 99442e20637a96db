"""Every example runs under torchrun with four ranks, and learns what it should in a few steps."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "python/examples"
sys.path.insert(0, str(EXAMPLES.parent / "tests"))
from run import OLD_TORCHRUN, torchrun  # noqa: E402

IS_OLD = bool(OLD_TORCHRUN)


def output_of(name, *options):
    command = torchrun(4, str(EXAMPLES / name), *map(str, options))
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120,
                            env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert result.returncode == 0, result.stdout + result.stderr
    return re.sub(r"^\[default\d\]:", "", result.stdout, flags=re.MULTILINE)


def test_smallest():
    # Ranks print at the same time: two may be in one line.
    losses = {int(rank): float(loss) for rank, loss in re.findall(r"rank (\d): loss (\d\.\d{3})", output_of("smallest.py"))}
    assert sorted(losses) == [0, 1, 2, 3]
    assert max(losses.values()) < 0.7  # guessing among three classes: log 3 = 1.1


def test_fashion_mnist():
    if not pathlib.Path("/usr/share/datasets/fashion-mnist").exists():
        pytest.skip("the images of Fashion-MNIST are not there")
    output = output_of("fashion_mnist.py", "--topology", EXAMPLES / "network.yaml", "--steps", 60, "--batch", 16,
                       "--test-images", 1000)
    result = json.loads(output.strip().split("\n")[-1])
    assert result["method"] == "dssync"
    assert result["test_accuracy"] > 0.6  # of ten classes


def test_characters(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    pattern = r"loss ([\d.]+) after (\d+) steps \(guessing: ([\d.]+)\)"
    output = output_of("characters.py", "--steps", 15, "--checkpoint", checkpoint)
    loss, steps, guessing = map(float, re.search(pattern, output).groups())
    assert steps == 15
    assert loss < guessing - 0.7
    assert torch.load(checkpoint)["sync"]["iteration"] == 15


def test_transformer():
    """The same script with DistributedDataParallel differs in three lines; both learn."""
    ours, plain = ((EXAMPLES / name).read_text().split('"""', 2)[2].split("\n") for name in ("transformer.py", "transformer_ddp.py"))
    assert len(ours) == len(plain)
    changes = [(a, b) for a, b in zip(plain, ours) if a != b]
    assert len(changes) == 3
    assert "".join(f"-{a}\n+{b}\n" for a, b in changes) in (ROOT / "docs/pytorch.md").read_text()
    options = ["--steps", 40, "--evaluate-every", 20]
    scripts = ["transformer_ddp.py"] if IS_OLD else ["transformer.py", "transformer_ddp.py"]  # attach needs PyTorch 2
    for script in scripts:
        losses = json.loads(output_of(script, *options).strip().split("\n")[-1])["held_out_loss"]
        assert list(losses) == ["20", "40"]
        assert losses["40"] < 3.2  # guessing: log 128 = 4.85


def test_deepfm():
    pattern = r"curve ([\d.]+), of the truth ([\d.]+)"
    found, best = map(float, re.search(pattern, output_of("deepfm.py", "--steps", 120)).groups())
    assert 0.65 < found < best
