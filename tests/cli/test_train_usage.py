"""What `dssync train` refuses before any worker starts, and its help."""

import pytest
from conftest import TOOL
from train_helper import SMALL, needs_torch, refusal, variables

pytestmark = needs_torch
TWO_RACKS = "examples/topologies/two-racks.yaml"


def test_help_speaks_as_dssync_train(dssync):
    result = dssync("train", "--help")
    assert result.returncode == 0 and result.stderr == ""
    assert "Usage: dssync train " in result.stdout
    for flag in ("topology", "workers", "method", "data", "model", "epochs", "iterations", "batch", "optimizer", "learning-rate",
                 "momentum", "weight-decay", "warmup", "seed", "disagreement", "group-limit", "schedule", "overlap", "in-line",
                 "optimizer-state", "state-period", "global-warmup", "period", "staleness", "bucket", "compute", "timeout", "port",
                 "log", "trace", "checkpoint", "checkpoint-every", "resume", "evaluate-every", "format", "color", "threads",
                 "context", "layers", "width", "heads", "rows", "betas", "clip-norm", "warmup-iterations", "final-rate", "swa"):
        assert f"--{flag} " in result.stdout, flag


def test_the_tool_lists_the_verb(dssync):
    assert "train " in dssync("--help").stdout
    assert dssync("train", "--version").stdout == dssync("--version").stdout


def test_without_pytorch_the_verb_says_so(tmp_path):
    import shutil
    import subprocess
    alone = tmp_path / "dssync"
    shutil.copy(TOOL, alone)
    result = subprocess.run([alone, "train", "--workers", "2"], env={"PATH": "/nowhere"}, capture_output=True, encoding="utf-8")
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr.startswith("dssync train: train needs the program dssync-torch, which is neither in ") and result.stderr.count("\n") == 1
    assert "'make build' builds it, with Debian's PyTorch (PyTorch 2 from PyPI has no Gloo for C++)" in result.stderr


# cli/train_test.cc has all flags; here is what a user sees.
@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], ["--workers or --topology FILE is required", "torchrun"]),
        (["--workers", "0"], ["--workers: expected a whole number from 1 to", "'0'"]),
        (["--workers", "2", "--topology", TWO_RACKS], ["two-racks.yaml", "8 workers", "--workers is 2"]),
        (["--topology", "nowhere.yaml"], ["nowhere.yaml"]),
        (["--workers", "2", "--model", "gpt"], ["--model", "gpt", "cnn"]),
        (["--workers", "2", "--model", "transformer"], ["model transformer is made for text, and the data is images"]),
        (["--workers", "2", "--data", "clicks", "--model", "deepfm", "--rows", "100"], ["100 rows", "multiple of 8"]),
        (["--workers", "2", "--fast"], ["unknown flag '--fast'", "see dssync train --help"]),
        (["--workers", "2", "more"], ["unknown argument 'more'"]),
        (["--workers", "2", "--log", "/nowhere/run.jsonl"], ["--log", "/nowhere is not a folder"]),
        (["--workers", "2", "--trace", "/tmp"], ["--trace", "/tmp is a folder"]),
        (["--workers", "2", "--method", "asp", "--staleness", "2"], ["--staleness belongs to --method ssp", "the method is asp"]),
    ],
)
def test_wrong_usage(arguments, words):
    message = refusal(*arguments)
    for word in words:
        assert word in message


def test_an_impossible_limit_is_answered_before_anything_starts():
    message = refusal("--topology", TWO_RACKS, *SMALL, "--group-limit", 3, "--disagreement", "0.01")
    assert "no schedule with groups of at most 3" in message and "(--disagreement " in message


@pytest.mark.parametrize(
    "environment, words",
    [
        ({"RANK": "1"}, ["RANK is set", "WORLD_SIZE is not"]),
        ({"RANK": "4", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1"}, ['RANK is "4"', "from 0 to 3"]),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, ["MASTER_ADDR"]),
    ],
)
def test_wrong_variables(environment, words):
    message = refusal(*SMALL, environment=environment)
    for word in words:
        assert word in message


def test_the_launcher_and_the_flags_agree_on_the_number_of_workers():
    assert "--workers is 3, but torchrun started 2 workers" in refusal("--workers", 3, environment=variables(0, 2, 1234))
    assert "has 8 workers, but torchrun started 2" in refusal("--topology", TWO_RACKS, environment=variables(0, 2, 1234))
    assert "MASTER_PORT" in refusal("--port", 1234, environment=variables(0, 2, 1234))
