"""Attacks on what users give: round after round, each from a seed that can be given again.

    python tests/fuzzing/attack.py commands --seed 7 --count 500
    python tests/fuzzing/attack.py all --seed 7 --jobs 16 --seconds 400
    python tests/fuzzing/attack.py all --only kernels,commands

A round makes something up and asserts that the answer is a good one. It gets 60 s of a core (a
machine may be busy) and 2 GB.
Failing rounds are printed with their seeds; `--seed 7/123 --count 1` repeats one of them. `all`
makes rounds of all attacks, or of those of `--only`, in several processes, of each so many as `ALL`
says or as far as the seconds go, and says how many there were.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from types import FrameType

Attack = Callable[[Random, Path], None]

CORE_SECONDS = 60
SECONDS = 600
REPEATED, REDUCED = re.compile(r"(.)\1{40,}"), r"\1...\1"
MEMORY_BYTES = 2 * 2**30
# Rounds that `all` makes in all its processes together.
ALL = {
    "kernels": 800,  # of 25 kernels each
    "predictions": 5_000,
    "commands": 20_000,
    "devices": 12_500,
    "measurements": 12_500,
    "numbers": 12_500,
    "journals": 12_500,
    "kills": 60,
    "signals": 60,
}


class TooLongError(BaseException):
    """A round has taken longer than a user should have to wait."""


def failure(attack: Attack, seed: str) -> str:
    """Make a round; return what went wrong, "" if nothing did."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.signal(signal.SIGPROF, _too_long)
    with tempfile.TemporaryDirectory() as folder:
        signal.alarm(SECONDS)
        signal.setitimer(signal.ITIMER_PROF, CORE_SECONDS)
        try:
            attack(Random(seed), Path(folder))
        except (Exception, SystemExit, TooLongError):
            said = "".join(traceback.format_exc().splitlines(keepends=True)[-40:])
            return f"seed {seed}: {re.sub(REPEATED, REDUCED, said)}"
        finally:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLongError


def known() -> dict[str, Attack]:
    """Return the attacks by name."""
    from fuzzing import commands, compiled, documents, kernels, kills, signals

    known = (compiled, kernels, commands, documents, kills, signals)
    return {name: attack for one in known for name, attack in one.ATTACKS.items()}


def rounds(name: str, seed: str, count: int) -> int:
    """Make so many rounds of an attack and print what fails; 1 where a round has failed."""
    attack = known()[name]
    seeds = [seed if "/" in seed else f"{seed}/{number}" for number in range(count)]
    failures = [said for said in (failure(attack, one) for one in seeds) if said]
    print(*failures, f"{name}, seed {seed}: {len(failures)} of {count} rounds failed", sep="\n")
    return 1 if failures else 0


def part(names: Sequence[str], seed: str, seconds: float, jobs: int) -> int:
    """Make a process's part of the rounds of `all`, evenly of each attack; print what was done."""
    attacks, end = known(), time.monotonic() + seconds
    wanted = {name: -(-ALL[name] // jobs) for name in names}
    done: collections.Counter[str] = collections.Counter()
    failures = []
    while time.monotonic() < end and done.total() < sum(wanted.values()):
        name = min(wanted, key=lambda name: done[name] / wanted[name])
        said = failure(attacks[name], f"{seed}/{done[name]}")
        failures += [f"{name}, {said}"] if said else []
        done[name] += 1
    print(json.dumps({"done": done, "failures": failures}))
    return 0


def everything(names: Sequence[str], seed: str, seconds: float, jobs: int) -> int:
    """Make rounds of attacks in several processes, each with seeds of its own."""
    words = [sys.executable, __file__, "part", "--seconds", str(seconds), "--jobs", str(jobs)]
    words += ["--only", ",".join(names)]
    processes = [
        subprocess.Popen([*words, "--seed", f"{seed}.{number}"], stdout=subprocess.PIPE, text=True)
        for number in range(jobs)
    ]
    done: collections.Counter[str] = collections.Counter()
    failures: list[str] = []
    for number, process in enumerate(processes):
        said, _ = process.communicate()
        if process.returncode:
            failures.append(f"seed {seed}.{number}: exit code {process.returncode}")
            continue
        found = json.loads(said.splitlines()[-1])
        done.update(found["done"])
        failures += found["failures"]
    print(*failures, sep="\n")
    print(_summary(names, done, failures))
    return 1 if failures else 0


def _summary(names: Sequence[str], done: Mapping[str, int], failures: Sequence[str]) -> str:
    counts = ", ".join(f"{done.get(name, 0):,} of {ALL[name]:,} {name}" for name in names)
    return f"{counts}; {len(failures)} failed"


def main() -> int:
    """Attack as the command line says; 1 where a round has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attack", choices=[*ALL, "all", "part"])
    parser.add_argument("--seed", default=str(time.time_ns()))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", default=",".join(ALL))
    chosen = parser.parse_args()
    names = chosen.only.split(",")
    if unknown := set(names) - ALL.keys():
        parser.error(f"{', '.join(unknown)}: attacks are {', '.join(ALL)}")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its buffers would count as memory
    if chosen.attack == "all":
        return everything(names, chosen.seed, chosen.seconds, chosen.jobs)
    warnings.simplefilter("error")
    # What may be written to: addresses that are only reserved, by threads or wasmtime, are free.
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    if chosen.attack == "part":
        return part(names, chosen.seed, chosen.seconds, chosen.jobs)
    return rounds(chosen.attack, chosen.seed, chosen.count)


if __name__ == "__main__":
    tests = Path(__file__).parent.parent
    sys.path[:0] = [str(tests), str(tests.parent)]
    sys.exit(main())
