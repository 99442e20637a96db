"""`dssync train` when all goes well: every method, what it prints and writes, going on from a checkpoint, other launchers."""

import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import termios
import zipfile

import pytest
from conftest import ENVIRONMENT, ROOT, TOOL, shown_on
from train_helper import SMALL, events, finish, needs_torch, ranks_by_hand, running, train

pytestmark = needs_torch

METHODS = ["bsp-ring", "bsp-hierarchical", "ps", "asp", "ssp", "local-sgd", "ds-sync"]
TWO_RACKS_OF_TWO = """\
defaults: {nic: 1Gbps}
switches:
  - {name: core}
  - {name: rack-a, parent: core, uplink: 100Mbps}
  - {name: rack-b, parent: core, uplink: 100Mbps}
hosts:
  - {name: "a[0-1]", switch: rack-a}
  - {name: "b[0-1]", switch: rack-b}
"""


@pytest.fixture
def racks(tmp_path):
    file = tmp_path / "racks.yaml"
    file.write_text(TWO_RACKS_OF_TWO)
    return file


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains(racks, tmp_path, method):
    log = tmp_path / "run.jsonl"
    extra = ["--period", 3] if method == "local-sgd" else []
    stdout, _ = train("--topology", racks, "--method", method, *extra, *SMALL, "--epochs", 4, "--iterations", 6, "--log", log, "--format",
                      "json")
    summary = json.loads(stdout)
    assert summary["method"] == method and summary["workers"] == 4
    assert summary["iterations"] == 6 and summary["total_iterations"] > 6
    assert 0 <= summary["test_accuracy"] <= 1
    assert summary["bytes_sent_per_iteration"] > 0
    assert summary["seconds_per_iteration"] >= summary["sync_seconds_per_iteration"] > 0
    assert summary["log"] == str(log) and summary["trace"] is None

    lines = events(log)
    assert lines[0]["event"] == "started" and lines[0]["method"] == method
    assert [line["iteration"] for line in lines if line["event"] == "iteration"] == [1, 2, 3, 4, 5, 6]
    last = lines[-1]
    assert last["event"] == "finished" and last["method"] == method and last["iterations"] == 6
    assert last["test_accuracy"] == pytest.approx(summary["test_accuracy"])
    assert last["seconds"] > 0


def test_exact_regions_train(racks, tmp_path):
    log = tmp_path / "run.jsonl"
    train("--topology", racks, "--exact-inside", "rack", *SMALL, "--iterations", 6, "--log", log)
    [started] = [line for line in events(log) if line["event"] == "started"]
    assert started["options"]["exact_inside"] == "rack"
    [network] = [line for line in events(log) if line["event"] == "network"]
    assert network["plan"]["replicas"] == [[0, 1], [2, 3]]


def test_training_learns():
    stdout, _ = train("--workers", 2, "--data", "synthetic", "--train-examples", 2000, "--test-examples", 500, "--model", "mlp",
                      "--batch", 16, "--learning-rate", 0.02, "--epochs", 3, "--evaluate-every", 0, "--format", "json")
    summary = json.loads(stdout)
    assert summary["iterations"] == summary["total_iterations"] and summary["epochs"] == 3
    assert summary["test_accuracy"] > 0.8


def test_iterations_alone_are_the_length_of_the_run(tmp_path):
    log = tmp_path / "run.jsonl"
    stdout, stderr = train("--workers", 2, *SMALL, "--iterations", 20, "--log", log, "--format", "json")
    summary = json.loads(stdout)
    assert summary["iterations"] == summary["total_iterations"] == 20
    rates = [line["learning_rate"] for line in events(log) if line["event"] == "iteration"]
    assert rates[0] == pytest.approx(0.05) and rates[1] == pytest.approx(0.1) and rates[-1] < 0.001


SMALL_TEXT = ["--data", "text", "--context", 16, "--train-examples", 512, "--test-examples", 64, "--batch", 8, "--model", "transformer", "--layers", 1,
              "--width", 16, "--heads", 2, "--optimizer", "adamw", "--betas", "0.9,0.95", "--clip-norm", 1, "--learning-rate", 0.02]
SMALL_CLICKS = ["--data", "clicks", "--rows", 32, "--train-examples", 4096, "--test-examples", 1000, "--batch", 128, "--model", "deepfm",
                "--optimizer", "adam", "--learning-rate", 0.03]


def test_text_and_a_transformer(racks):
    stdout, stderr = train("--topology", racks, *SMALL_TEXT, "--iterations", 40, "--format", "json")
    assert "transformer with " in stderr and "text: 512 windows" in stderr
    summary = json.loads(stdout)
    assert summary["test_loss"] < 3.7  # guessing among 128 symbols: 4.85
    assert summary["test_auc"] is None and summary["swa"] is None


def test_clicks_and_the_mean_over_iterations(racks, tmp_path):
    log = tmp_path / "run.jsonl"
    stdout, stderr = train("--topology", racks, *SMALL_CLICKS, "--iterations", 40, "--swa", 21, "--final-rate", 0.01, "--log", log)
    assert "clicks: 4,096 impressions" in stderr and ", AUC 0." in stderr and "  mean: accuracy " in stderr
    assert "of parameters over 20 iterations" in stdout
    last = events(log)[-1]
    assert 0.6 < last["test_auc"] < 1 and last["swa"]["iterations"] == 20
    assert last["swa"]["test_auc"] == pytest.approx(last["test_auc"], abs=0.05)


def test_text_that_is_not_there_names_the_package(tmp_path):
    with running("--workers", 2, *SMALL_TEXT, "--data-folder", tmp_path) as process:
        status, stdout, stderr = finish(process)
    assert status == 2 and stdout == ""
    assert f"{tmp_path}: has 0 *.py files" in stderr and "apt install libpython3-stdlib" in stderr


def test_the_text_says_what_was_done(racks):
    stdout, stderr = train("--topology", racks, *SMALL, "--iterations", 4, "--disagreement", "0.3")
    lines = stdout.splitlines()
    assert lines[0] == "mlp on synthetic, ds-sync, 4 workers"
    for word in ("accuracy", "loss", "time", "per iteration", "speed", "sent", "disagreement"):
        assert any(line.split("  ")[1].strip() == word for line in lines[2:]), stdout
    assert "4 workers: mlp with " in stderr and "S = " in stderr and "predicted " in stderr
    assert "\x1b" not in stdout + stderr and "\r" not in stderr


def test_the_trace_has_all_ranks(tmp_path):
    trace = tmp_path / "trace.json"
    train("--workers", 3, *SMALL, "--iterations", 4, "--trace", trace)
    content = json.loads(trace.read_text())
    spans = content["traceEvents"] if isinstance(content, dict) else content
    assert {event["pid"] for event in spans if event["ph"] == "X"} == {0, 1, 2}
    assert all(event["dur"] >= 0 for event in spans if event["ph"] == "X")


def test_a_terminal_sees_a_live_line_that_fits():
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    process = subprocess.Popen([TOOL, "train", "--workers", "2", *SMALL, "--iterations", "20"], cwd=ROOT, env=ENVIRONMENT,
                               stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    output = shown_on(ours)
    assert process.wait(timeout=60) == 0
    shown = [part.split("\r")[0].split("\n")[0] for part in output.decode().split("\r\x1b[K")[1:]]
    live = [part for part in shown if part.startswith("epoch ") and "iteration" in part and ":" not in part]
    assert live and all(len(part) < 40 for part in live), shown


def saved_tensors(folder):
    """The bytes of all tensors in the latest checkpoint: parameters, buffers, optimizer state. By rank and number."""
    tensors = {}
    for file in sorted((folder / (folder / "latest").read_text().strip()).glob("rank-*.ckpt")):
        with zipfile.ZipFile(io.BytesIO(file.read_bytes()[32:])) as archive:  # after dssync's header, torch's format
            for name in archive.namelist():
                if "/data/" in name:
                    tensors[file.name, name] = archive.read(name)
    assert len(tensors) > 8
    return tensors


@pytest.mark.parametrize("flags", [["--method", "ds-sync", "--in-line"], ["--method", "bsp-ring"], ["--exact-inside", "rack"]],
                         ids=["ds-sync", "bsp-ring", "exact"])
def test_a_resumed_run_ends_with_the_same_bits(racks, tmp_path, flags):
    common = ["--topology", racks, *flags, *SMALL, "--epochs", 4, "--format", "json"]
    whole = json.loads(train(*common, "--iterations", 12, "--checkpoint", tmp_path / "whole")[0])
    log = tmp_path / "run.jsonl"
    train(*common, "--iterations", 5, "--checkpoint", tmp_path / "parts", "--log", log)
    rest, stderr = train(*common, "--iterations", 12, "--checkpoint", tmp_path / "parts", "--resume", "--log", log)
    resumed = json.loads(rest)
    assert "going on after iteration 5 of" in stderr
    assert resumed["first_iteration"] == 5 and resumed["iterations"] == 12
    assert (resumed["test_accuracy"], resumed["test_loss"]) == (whole["test_accuracy"], whole["test_loss"])
    assert saved_tensors(tmp_path / "parts") == saved_tensors(tmp_path / "whole")
    kinds = [line["event"] for line in events(log)]
    assert kinds.count("finished") == 2 and "resumed" in kinds and kinds[-1] == "finished"


# torchrun counts how often it started all workers anew.
@pytest.mark.parametrize("more", [{}, {"TORCHELASTIC_RESTART_COUNT": "1"}], ids=["first", "again"])
def test_workers_of_another_launcher(tmp_path, more):
    log = tmp_path / "run.jsonl"
    ended = ranks_by_hand(3, lambda rank: [*SMALL, "--iterations", 5, "--format", "json", "--log", log], **more)
    assert [status for status, _, _ in ended] == [0, 0, 0], ended
    assert json.loads(ended[0][1])["workers"] == 3
    assert [stdout for _, stdout, _ in ended[1:]] == ["", ""] and [stderr for _, _, stderr in ended[1:]] == ["", ""]
    assert events(log)[-1]["event"] == "finished"
