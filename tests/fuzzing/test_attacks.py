"""What users give, made up by the hundred: an answer or a sentence, in 60 s and 2 GB.

The seed is that of the day; GPUSIM_SEED gives another one, GPUSIM_ROUNDS how many rounds of each
attack the slow tests make.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

ATTACK = Path(__file__).parent / "attack.py"
SHORT = {
    "commands": 10,
    "devices": 10,
    "measurements": 10,
    "numbers": 20,
    "journals": 8,
}
LONG = {**dict.fromkeys(SHORT, 10_000), "kills": 60, "signals": 60}


def attacked(name: str, count: int) -> None:
    """Attack in a process of its own, whose memory is limited; print the seed."""
    seed = os.environ.get("GPUSIM_SEED", datetime.datetime.now(datetime.UTC).date().isoformat())
    done = subprocess.run(
        [sys.executable, str(ATTACK), name, "--seed", seed, "--count", str(count)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # it finds gpusim itself
    )
    print(done.stdout + done.stderr)
    assert done.returncode == 0


@pytest.mark.parametrize("name", SHORT)
def test_a_short_attack_finds_nothing(name: str) -> None:
    attacked(name, SHORT[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_a_long_attack_finds_nothing(name: str) -> None:
    attacked(name, int(os.environ.get("GPUSIM_ROUNDS", LONG[name])))
