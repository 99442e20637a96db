"""Frameworks on top of the package really train, with two ranks. What is not installed is skipped."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from run import OLD_TORCHRUN, torchrun  # noqa: E402


@pytest.mark.skipif(bool(OLD_TORCHRUN), reason="attach needs PyTorch 2")
@pytest.mark.parametrize("framework", ["accelerate", "lightning", "transformers"])
def test_framework(framework, tmp_path):
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed (pip install {framework})")
    command = torchrun(2, str(HERE.parent / f"integrations/with_{framework}.py"), str(tmp_path / "checkpoint"))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
