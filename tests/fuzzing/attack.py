"""Attacks on what users give: round after round, each from a seed that can be given again.

    python tests/fuzzing/attack.py commands --seed 7 --count 500

A round makes something up and asserts that the answer is a good one. It gets 60 s of a core (a
machine may be busy) and 2 GB.
Failing rounds are printed with their seeds; `--seed 7/123 --count 1` repeats one of them.
"""

from __future__ import annotations

import argparse
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType

Attack = Callable[[Random, Path], None]

CORE_SECONDS = 60
SECONDS = 600
REPEATED, REDUCED = re.compile(r"(.)\1{40,}"), r"\1...\1"
MEMORY_BYTES = 2 * 2**30


class TooLongError(BaseException):
    """A round has taken longer than a user should have to wait."""


def rounds(attack: Attack, seed: str, count: int) -> list[str]:
    """Return what went wrong in `count` rounds, a text each."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.signal(signal.SIGPROF, _too_long)
    failures = []
    for number in range(count):
        name = seed if "/" in seed else f"{seed}/{number}"
        with tempfile.TemporaryDirectory() as folder:
            signal.alarm(SECONDS)
            signal.setitimer(signal.ITIMER_PROF, CORE_SECONDS)
            try:
                attack(Random(name), Path(folder))
            except (Exception, SystemExit, TooLongError):
                said = "".join(traceback.format_exc().splitlines(keepends=True)[-40:])
                failures.append(f"seed {name}: {re.sub(REPEATED, REDUCED, said)}")
            finally:
                signal.alarm(0)
                signal.setitimer(signal.ITIMER_PROF, 0)
    return failures


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLongError


def main() -> int:
    """Attack as the command line says; 1 where a round has failed."""
    from fuzzing import commands, documents, kills

    attacks: dict[str, Attack] = {**commands.ATTACKS, **documents.ATTACKS, **kills.ATTACKS}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attack", choices=attacks)
    parser.add_argument("--seed", default=str(time.time_ns()))
    parser.add_argument("--count", type=int, default=100)
    chosen = parser.parse_args()
    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    failures = rounds(attacks[chosen.attack], chosen.seed, chosen.count)
    for failure in failures:
        print(failure)
    print(f"{chosen.attack}, seed {chosen.seed}: {len(failures)} of {chosen.count} rounds failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(main())
