"""The README's training example learns, with eight workers that are started as torchrun would.

usage: train_a_model_test.py PROGRAM
"""

import os
import pathlib
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKERS = 8


def start(program, rank, port):
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": WORKERS, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                 "OMP_NUM_THREADS": 1}
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    return subprocess.Popen([program], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def main():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    workers = [start(sys.argv[1], rank, port) for rank in range(WORKERS)]
    try:
        outputs = [worker.communicate(timeout=120)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    statuses = [worker.returncode for worker in workers]
    assert statuses == [0] * WORKERS, statuses
    assert outputs[1:] == [""] * (WORKERS - 1), outputs
    name, loss = outputs[0].split()
    # The loss of guessing among three classes is log 3 = 1.1.
    assert name == "loss" and float(loss) < 0.6, outputs[0]
    print(f"{WORKERS} workers, loss {loss}")


if __name__ == "__main__":
    main()
