"""`dssync train` when something goes wrong: lost workers, interruptions, files, other machines. Whatever happens, it ends
within seconds, says why, leaves a valid log and no process."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from conftest import ENVIRONMENT, ROOT, TOOL
from train_helper import (ENDLESS, SMALL, events, eventually, finish, free_port, members, needs_torch, ranks_by_hand, running, train,
                          two_racks, variables, wait_for_iterations, worker_pid)

pytestmark = needs_torch


def lines_of_rank(stderr, rank):
    return [line for line in stderr.splitlines() if line.startswith(f"dssync train: rank {rank}: ")]


@pytest.mark.parametrize("method", ["ds-sync", "bsp-ring", "bsp-hierarchical", "ps", "asp", "ssp", "local-sgd"])
def test_a_killed_worker_is_named_by_all_others(tmp_path, method):
    log = tmp_path / "run.jsonl"
    with running("--workers", 4, "--method", method, *ENDLESS, "--log", log) as process:
        wait_for_iterations(process, log)
        os.kill(worker_pid(process, 3), signal.SIGKILL)
        status, stdout, stderr = finish(process, 15)
    assert status == 1 and stdout == ""
    for rank in (0, 1, 2):
        (line,) = lines_of_rank(stderr, rank)
        assert "rank 3 was killed by signal 9 (Killed)" in line
    assert stderr.splitlines()[-1] == "dssync train: rank 3 was killed by signal 9 (Killed)"
    last = events(log)[-1]
    assert last["event"] == "failed" and "rank 3 was killed by signal 9" in last["cause"]


@pytest.mark.parametrize("method", ["ds-sync", "bsp-ring", "asp"])
def test_a_stopped_worker_is_named_by_all_others(tmp_path, method):
    log = tmp_path / "run.jsonl"
    with running("--workers", 4, "--method", method, *ENDLESS, "--log", log) as process:
        wait_for_iterations(process, log)
        stopped = time.monotonic()
        os.kill(worker_pid(process, 2), signal.SIGSTOP)
        # A worker ends as soon as it has said why.
        for rank in (0, 1, 3):
            eventually(lambda: f"dssync-rank-{rank}" not in members(process.pid).values(), f"the end of rank {rank}")
        named = time.monotonic() - stopped
        status, stdout, stderr = finish(process, 15)
    seconds = time.monotonic() - stopped
    print(f"{method}: the others named the stopped worker after {named:.1f} s, the run ended after {seconds:.1f} s")
    assert status == 1 and stdout == ""
    for rank in (0, 1, 3):
        (line,) = lines_of_rank(stderr, rank)
        assert "rank 2 gives no sign of life" in line
    assert stderr.splitlines()[-1] == "dssync train: rank 2 gives no sign of life"
    assert seconds < 9
    last = events(log)[-1]
    assert last["event"] == "failed" and "rank 2 gives no sign of life" in last["cause"]


def test_a_stopped_rank_0_that_serves_the_store_is_named(tmp_path):
    log, port = tmp_path / "run.jsonl", free_port()
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(running(*ENDLESS, "--log", log, environment=variables(rank, 3, port))) for rank in range(3)]
        wait_for_iterations(processes[0], log)
        processes[0].send_signal(signal.SIGSTOP)
        ended = [finish(process, 20) for process in processes[1:]]
    for rank, (status, _, stderr) in enumerate(ended, start=1):
        assert status == 1 and "rank 0 gives no sign of life" in lines_of_rank(stderr, rank)[-1], stderr


def test_a_stopped_worker_that_goes_on_learns_that_it_was_given_up(tmp_path):
    log, port = tmp_path / "run.jsonl", free_port()
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(running(*ENDLESS, "--log", log, environment=variables(rank, 3, port))) for rank in range(3)]
        wait_for_iterations(processes[0], log)
        processes[2].send_signal(signal.SIGSTOP)
        (others, _, first) = finish(processes[1], 20)
        processes[2].send_signal(signal.SIGCONT)
        (status, _, stderr) = finish(processes[2], 20)
        finish(processes[0], 20)
    assert others == 1 and "rank 2 gives no sign of life" in lines_of_rank(first, 1)[-1], first
    assert status == 1 and re.search("rank 2 gives no sign of life|lost the store|the store is gone", stderr), stderr
    assert not re.search("rank [01] gives no sign of life", stderr), stderr


def test_a_killed_rank_0_is_named_too(tmp_path):
    log = tmp_path / "run.jsonl"
    with running("--workers", 3, *ENDLESS, "--log", log) as process:
        wait_for_iterations(process, log)
        os.kill(worker_pid(process, 0), signal.SIGKILL)
        status, _, stderr = finish(process, 15)
    assert status == 1
    for rank in (1, 2):
        (line,) = lines_of_rank(stderr, rank)
        assert "rank 0 was killed by signal 9 (Killed)" in line
    assert all(event["event"] != "finished" for event in events(log))  # and every line is valid


def test_ctrl_c_leaves_a_valid_log_and_no_process(tmp_path):
    log = tmp_path / "run.jsonl"
    with running("--workers", 3, *ENDLESS, "--log", log) as process:
        wait_for_iterations(process, log)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        status, stdout, stderr = finish(process, 10)
    assert status == 1 and stdout == ""
    assert stderr.splitlines()[-1] == "dssync train: interrupted by signal 2 (Interrupt)"
    assert "rank" not in stderr
    last = events(log)[-1]
    assert last["event"] == "interrupted" and last["iterations"] >= 3


def test_sigterm_to_the_launcher_does_the_same(tmp_path):
    log = tmp_path / "run.jsonl"
    with running("--workers", 2, *ENDLESS, "--log", log) as process:
        wait_for_iterations(process, log)
        process.terminate()
        status, _, stderr = finish(process, 10)
    assert status == 1 and "interrupted by signal 15 (Terminated)" in stderr
    assert events(log)[-1]["event"] == "interrupted"


def test_no_worker_outlives_a_killed_launcher(tmp_path):
    log = tmp_path / "run.jsonl"
    with running("--workers", 3, *ENDLESS, "--log", log) as process:
        wait_for_iterations(process, log)
        process.kill()
        finish(process, 10)
    assert events(log)  # every line is valid


def test_an_interrupted_run_goes_on(tmp_path):
    log = tmp_path / "run.jsonl"
    checkpoint = ["--checkpoint", tmp_path / "saved", "--checkpoint-every-iterations", 2]
    with running("--workers", 2, *ENDLESS, "--log", log, *checkpoint) as process:
        wait_for_iterations(process, log)
        os.killpg(process.pid, signal.SIGINT)
        finish(process, 10)
    done = events(log)[-1]["iterations"]
    train("--workers", 2, *ENDLESS, "--log", log, *checkpoint, "--resume", "--iterations", done + 5)
    assert events(log)[-1]["event"] == "finished" and events(log)[-1]["iterations"] == done + 5


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_worker_of_another_launcher_is_named(tmp_path, stop):
    log, port = tmp_path / "run.jsonl", free_port()
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(running(*ENDLESS, "--log", log, environment=variables(rank, 2, port))) for rank in (0, 1)]
        wait_for_iterations(processes[0], log)
        processes[1].send_signal(stop)
        ended = [finish(process, 20) for process in processes]
    assert [status for status, _, _ in ended] == [1, 1]
    assert re.fullmatch(rf"dssync train: rank 1: interrupted by signal {stop.value} \(\w+\)\n", ended[1][2])
    assert f"rank 1 failed: interrupted by signal {stop.value}" in lines_of_rank(ended[0][2], 0)[-1]
    assert events(log)[-1]["event"] == "failed"


def test_a_killed_worker_of_another_launcher_is_named(tmp_path):
    log, port = tmp_path / "run.jsonl", free_port()
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(running(*ENDLESS, "--log", log, environment=variables(rank, 3, port))) for rank in range(3)]
        wait_for_iterations(processes[0], log)
        processes[2].kill()
        ended = [finish(process, 20) for process in processes]
    for rank in (0, 1):
        status, _, stderr = ended[rank]
        assert status == 1 and "rank 2 gives no sign of life" in lines_of_rank(stderr, rank)[-1], stderr


def test_a_port_of_another_service_is_noticed_in_time():
    with socket.socket() as mute:  # it takes connections and never answers
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        port = mute.getsockname()[1]
        with running(*SMALL, "--timeout", "2s", environment=variables(1, 2, port)) as process:
            status, _, stderr = finish(process, 30)
    (line,) = stderr.splitlines()
    assert status == 1 and line.startswith("dssync train: rank 1: cannot reach the store at") and str(port) in line


def test_differing_networks_are_named(tmp_path):
    files = [tmp_path / f"{uplink}.yaml" for uplink in (50, 25)]
    for file in files:
        file.write_text(two_racks("200Mbps", f"{file.stem}Mbps"))
    ended = ranks_by_hand(4, lambda rank: [*SMALL, "--topology", files[rank == 3], "--timeout", "20s"], 30)
    for rank, (status, _, stderr) in enumerate(ended):
        assert status == 1 and "the workers differ in their network: rank 3 has" in lines_of_rank(stderr, rank)[-1], stderr


def test_a_port_in_use_is_named():
    with socket.socket() as holder:
        holder.bind(("0.0.0.0", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with running("--workers", 2, *SMALL, "--port", port) as process:
            status, stdout, stderr = finish(process, 30)
    assert status == 1 and stdout == ""
    assert stderr == f"dssync train: cannot serve the workers' store on port {port}: another process uses it\n"


def test_an_unreachable_host_is_named_in_time():
    # 192.0.2.0/24 is reserved for documents: nobody answers.
    with running(*SMALL, "--timeout", "2s", environment=variables(1, 2, free_port(), "192.0.2.1")) as process:
        status, _, stderr = finish(process, 30)
    (line,) = stderr.splitlines()
    assert status == 1 and line.startswith("dssync train: rank 1: ") and "192.0.2.1" in line


def test_a_host_without_a_store_is_named_in_time():
    port = free_port()
    with running(*SMALL, "--timeout", "2s", environment=variables(1, 2, port)) as process:
        status, _, stderr = finish(process, 30)
    (line,) = stderr.splitlines()
    assert status == 1 and line.startswith("dssync train: rank 1: ") and f"127.0.0.1:{port}" in line


def test_a_missing_worker_is_named():
    ended = ranks_by_hand(3, lambda rank: None if rank == 1 else [*SMALL, "--timeout", "2s"], 30)
    for (status, _, stderr), rank in zip(ended, (0, 2)):
        assert status == 1
        assert "rank 1 did not come within 2 s" in lines_of_rank(stderr, rank)[-1], stderr


def test_a_differing_model_is_named():
    ended = ranks_by_hand(3, lambda rank: [*SMALL[:-1], "cnn" if rank == 2 else "mlp", "--timeout", "20s"], 30)
    for rank, (status, _, stderr) in enumerate(ended):
        assert status == 1
        (line,) = lines_of_rank(stderr, rank)
        assert "cnn" in line and "mlp" in line and "2" in line


def test_a_differing_option_is_named():
    ended = ranks_by_hand(2, lambda rank: [*SMALL, "--learning-rate", 0.1 + 0.1 * rank, "--timeout", "20s"], 30)
    for rank, (status, _, stderr) in enumerate(ended):
        assert status == 1 and "learning rate" in lines_of_rank(stderr, rank)[-1]


def test_a_process_of_another_run_is_refused(tmp_path):
    log, port = tmp_path / "run.jsonl", free_port()
    run = {"TORCHELASTIC_RUN_ID": "today"}
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(running(*ENDLESS, "--log", log, environment=variables(rank, 2, port, **run))) for rank in (0, 1)]
        wait_for_iterations(processes[0], log)
        stale = variables(1, 2, port, TORCHELASTIC_RUN_ID="yesterday")
        status, _, stderr = finish(stack.enter_context(running(*SMALL, environment=stale)), 30)
        again = variables(1, 2, port)
        status_again, _, stderr_again = finish(stack.enter_context(running(*SMALL, environment=again)), 30)
        done = len(events(log))
        wait_for_iterations(processes[0], log, done + 3)  # and the run goes on
    assert status == 2
    assert stderr == f"dssync train: rank 1: rank 1 belongs to run yesterday, but the store at 127.0.0.1:{port} serves run today\n"
    assert status_again == 2 and "two workers were started with the same rank" in stderr_again


def test_a_rank_that_is_there_twice():
    port = free_port()
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(running(*SMALL, "--timeout", "2s", environment=variables(rank, 3, port))) for rank in (0, 1, 1)]
        ended = [finish(process, 30) for process in processes]
    assert sorted(status for status, _, _ in ended) == [1, 1, 2]
    assert any("two workers were started with the same rank" in stderr for _, _, stderr in ended)


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint of two workers, and how to go on from it."""
    folder = tmp_path / "saved"
    common = ["--workers", 2, *SMALL, "--epochs", 4, "--checkpoint", folder]
    train(*common, "--iterations", 3)
    return folder, [*common, "--iterations", 6, "--resume"]


def file_of_rank(folder, rank):
    return folder / (folder / "latest").read_text().strip() / f"rank-{rank}.ckpt"


def test_a_truncated_checkpoint_is_named(checkpoint):
    folder, resume = checkpoint
    file = file_of_rank(folder, 1)
    os.truncate(file, file.stat().st_size // 2)
    with running(*resume) as process:
        status, stdout, stderr = finish(process, 30)
    assert status == 1 and stdout == ""
    (line,) = lines_of_rank(stderr, 1)
    assert str(file) in line and "truncated" in line
    assert "rank 1 " in lines_of_rank(stderr, 0)[-1]


def test_a_checkpoint_of_another_run_is_refused(checkpoint):
    folder, resume = checkpoint
    with running(*resume, "--seed", 7) as process:
        status, _, stderr = finish(process, 30)
    assert status == 2 and "seed" in stderr and "7" in stderr


def test_nothing_to_resume_is_bad_input(tmp_path):
    with running("--workers", 2, *SMALL, "--checkpoint", tmp_path / "empty", "--resume") as process:
        status, _, stderr = finish(process, 30)
    assert status == 2 and "no checkpoint" in stderr


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system with room for 64 kB."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a tiny file system needs root and mount")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "dssync-test", folder], capture_output=True, encoding="utf-8")
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a tiny file system: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_at_a_checkpoint_is_named(tiny_disk, tmp_path):
    log = tmp_path / "run.jsonl"
    with running("--workers", 2, *SMALL, "--iterations", 4, "--checkpoint", tiny_disk / "saved", "--log", log) as process:
        status, stdout, stderr = finish(process, 30)
    assert status == 1 and stdout == ""
    assert str(tiny_disk) in stderr and "No space left on device" in stderr
    assert events(log)[-1]["event"] == "failed"


def test_a_log_on_a_full_disk_is_named():
    with running("--workers", 2, *SMALL, "--iterations", 4, "--log", "/dev/full") as process:
        status, _, stderr = finish(process, 30)
    assert status == 1 and "/dev/full" in stderr and "No space left on device" in stderr


def test_missing_data_says_how_to_get_it(tmp_path):
    with running("--workers", 2, "--data-folder", tmp_path) as process:
        status, _, stderr = finish(process, 30)
    assert status == 2 and str(tmp_path) in stderr and "dataset-fashion-mnist" in stderr


def test_a_result_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:
        result = subprocess.run([TOOL, "train", "--workers", "2", *SMALL, "--iterations", "2"], cwd=ROOT, env=ENVIRONMENT, stdout=full,
                                stderr=subprocess.PIPE, encoding="utf-8", timeout=60)
    assert result.returncode == 1
    assert "dssync train: rank 0: cannot write to standard output: No space left on device" in result.stderr
