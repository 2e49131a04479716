"""Command lines made of every subcommand's own options, with values that are right or odd."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path
from random import Random

import numpy as np
from fuzzing.damage import NUMBERS

from gpusim import catalogue
from gpusim.cli.app import MODULES, main
from gpusim.cli.app import command as command_of
from gpusim.cli.options import Command, Option
from gpusim.gpu import device

MOST_LINES = 20  # of a complaint
VALIDATE = Command(
    "validate",
    lambda chosen: 0,
    (
        Option("--against", "", "MEASURED"),
        Option("--kernel", "", "A,B,..."),
        Option("-n", "", "N"),
        Option("--page", "", "FILE"),
        Option("--picture", "", "FILE"),
        Option("--out", "", "FILE"),
        Option("--workers", "", "N"),
        Option("--json", ""),
    ),
)
MOST_LETTERS = 4000
KERNELS = [entry.name for entry in catalogue.entries()]

ODD = (
    "", " ", "-", "--", "-1", "0", "x", ",", ",,", "a,b", "nan", "inf", "None", "True", "é", "日本",
    "\udcff", "a\nb", "\x1b[2J", "%s", "{}", "../..", "/", "/dev/null", "/dev/full", "/dev/zero",
    "a" * 300, "a" * 5000, "[" * 1000, "2^64", "2^2000", "4294967296^64", "1x1x1", "1x1x1x1", "0x0",
    "16x16", "1e6", "1e99", *NUMBERS,
)  # fmt: skip

# Values that may be right, by the name of the value in the help, else by the option.
RIGHT: dict[str, tuple[str, ...]] = {
    "KERNEL": (*KERNELS, "mine.py:add", "mine.py:add", "mine.py", "mine.py:nothing", "none.py:f"),
    "N": ("1", "2", "31", "32", "33", "1000", "4096", "2^12", "1e4"),
    "THREADS": ("64", "128", "256", "512", "1024", "64", "128", "256", "1", "96", "16x16", "1025"),
    "BLOCKS": ("1", "2", "7", "64", "2x2"),
    "OP": ("sum", "max", "min", "mean"),
    "TYPE": ("int32", "uint32", "int64", "float32", "float64", "int8", "bool", "flaot"),
    "FACTOR": ("1", "2", "4"),
    "FILE": (
        "numbers.npy", "numbers.csv", "table.csv", "table.json", "new.csv", "new.svg", "new.md",
    ),
    "GPU": ("h200", "k40m", "8800gtx", "RTX 3060 Ti", "my.toml", "none.toml"),
    "L2": ("cold", "warm", "hot"),
    "PASSES": ("one", "all", "two"),
    "X": ("barriers", "bank-conflicts", "divergence", "luck"),
    "I": ("0", "1", "9999"),
    "W": ("0", "1", "31"),
    "PICTURE": ("tree", "divergence", "banks", "strides"),
    "CC": ("9.0", "7.5", "1.0", "sm_80", "4.2"),
    "LEVEL": ("0", "3", "O3", "2"),
    "BYTES": ("0", "4", "256", "300000"),
    "2^20..2^24": ("64", "2^10,2^12", "1,2,3"),
    "KEY=VALUE": (
        "latency_cycles.l2=250", "bandwidth.dram_gbps=100", "gpu.sms=1", "sm.schedulers=0", "l2=3",
        "gpu.compute_capability=3.5", "sm.max_warps=1", "=", "latency_cycles.l2=nan",
    ),
    "--kernel": ("reduce1", "reduce3,reduce6", "reduce1,reduce1,nothing"),
    "--workers": ("1",),
    "--device": ("h200", "h200,k40m", "my.toml,none"),
    "--block": ("64", "64,128", "8x8,64", "64..128", "9..1"),
    "--waves": ("1", "1,2", "0"),
    "--coarse": ("1", "1..4"),
    "--tune": ("n=1", "A=1,2", "add=1", "=1", "TILE=", "T=float,$"),
    "--max-registers": ("1", "64", "x"),
    "--max-shared": ("1", "65536"),
    "--top": ("1", "0"),
    "--dask": ("x y",),
    "MEASURED": ("k40m", "table.json", "none.json", "nothing"),
    "--out": ("new.csv", "table.csv", "table.json", "new.json", "new.svg", "new.txt", "/dev/full"),
    "--arg": (
        "1", "0.5", "true", "n=3", "int32[64]", "int32[64]=arange", "float32[8,8]=random",
        "a=int32[64]",
        "int32[4]=full:7", "uint8(3)", "float32(1e39)", "@numbers.npy", "float32@numbers.csv",
        "int32[2147483647]", "int32[65536,65536]", "b=1",
    ),
    "--explore": ("1", "3"),
    "--seed": ("0", "7"),
    "--order": ("0", "5"),
    "--step-limit": ("1", "100", "100000"),
    "--line": ("1", "5", "81"),
}  # fmt: skip
OWN = ("--arg", "--shared-bytes")
CATALOGUES = ("-n", "--op", "--dtype", "--input", "--coarse", "--passes")
OF_ADD: dict[str, list[list[str]]] = {
    "kernel": [["mine.py:add"], ["mine.py"]],
    "--arg": [
        ["--arg", "int32[64]=arange", "--arg", "64"],
        ["--arg", "n=uint32(3)", "--arg", "float32[64]=random"],
        ["--arg", "@numbers.npy", "--arg", "2^6"],
    ],
    "--grid": [["--grid", "1"], ["--grid", "2"]],
    "--block": [["--block", "32"], ["--block", "8x8"]],
    "--shared-bytes": [[], ["--shared-bytes", "1024"]],
}
SMALL = {"-n": "4096", "--workers": "1", "--against": "k40m"}

FILES = {
    "mine.py": """
from gpusim import cuda

@cuda.jit
def add(a, n):
    i = cuda.grid(1)
    if i < n:
        a[i] += 1
""",
    "exits.py": "raise SystemExit(0)",
    "numbers.csv": "1\n2\n3\n",
    "table.csv": "1,2\n",
    "table.json": "[]",
}


def attack(random: Random, folder: Path) -> None:
    """Run a command line; AssertionError where its answer is no good one."""
    _furnish(folder)
    words = command_line(random)
    with contextlib.chdir(folder):
        out, err, code = answered(words)
    said = f"gpusim {shlex.join(words)}\nexit code {code}\n{err}"
    assert code in (0, 1, 2), said
    assert "Traceback" not in err, said
    assert "Warning" not in err, said
    assert bool(err) == (code == 2), said
    assert len(err) < MOST_LETTERS, said
    assert err.count("\n") <= MOST_LINES, said
    assert code != 1 or words[0] in ("run", "check", "validate") or "--check" in words, said
    assert code == 2 or out or words[0] in ("plot",), said


def answered(words: list[str]) -> tuple[str, str, int]:
    """Return what a command prints to either stream, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return out.getvalue(), err.getvalue(), code


def command_line(random: Random) -> list[str]:
    """Return a command with some of its options, most of them right."""
    command = random.choice([*map(command_of, MODULES), VALIDATE])
    oddness = random.choice([0, 0, 0, 0.1, 0.3, 0.9])
    is_own = random.random() < 0.3
    words = [command.name]
    if command is VALIDATE:
        words.append(random.choice(["compare", "compare", "run", "calibrate", "nothing"]))
    given = set()
    for option in random.sample(command.options, len(command.options)):
        fits = option.flag not in (CATALOGUES if is_own else OWN) or random.random() < 0.02
        if fits and _is_wanted(random, option, is_own):
            given.add(option.flag)
            words += _written(random, option, oddness, is_own)
    for flag, value in SMALL.items():
        is_left_out = is_own and flag == "-n"
        if (
            flag not in given
            and not is_left_out
            and any(option.flag == flag for option in command.options)
        ):
            words += [flag, value]
    if random.random() < 0.05:
        words.insert(random.randrange(len(words) + 1), random.choice(ODD))
    return words


def _is_wanted(random: Random, option: Option, is_own: bool) -> bool:
    if not option.flag.startswith("-") or (is_own and option.flag in (*OWN, "--block", "--grid")):
        return random.random() < 0.97
    return random.random() < 0.15


def _written(random: Random, option: Option, oddness: float, is_own: bool) -> list[str]:
    """Return an option with its value, or several of them where it may be repeated."""
    if is_own and oddness == 0 and option.flag in OF_ADD:
        return random.choice(OF_ADD[option.flag])
    times = random.choice([1, 2, 3]) if option.repeated or option.arity == "*" else 1
    words = []
    for _ in range(times):
        if option.flag.startswith("-"):
            words.append(option.flag)
        if option.metavar is not None:
            right = RIGHT.get(option.flag) or RIGHT.get(option.metavar) or ("1", "x")
            words.append(random.choice(ODD if random.random() < oddness else right))
    return words


def _furnish(folder: Path) -> None:
    """Write the files that a command line may name."""
    for name, content in FILES.items():
        (folder / name).write_text(content)
    np.save(folder / "numbers.npy", np.arange(64, dtype=np.int32))
    built_in = Path(device.__file__).parent / "devices" / "h200.toml"
    (folder / "my.toml").write_bytes(built_in.read_bytes())


ATTACKS = {"commands": attack}
