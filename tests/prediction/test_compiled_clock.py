"""The compiled clock: it plays as SimPy does."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prediction.test_clock import Spans, plain_device, simulate

from gpusim.catalogue import Request
from gpusim.gpu import device
from gpusim.host import fast
from gpusim.isa.ops import Instruction, Memory
from gpusim.prediction.clock import program_steps
from gpusim.prediction.clock.multiprocessor import StreamingMultiprocessor
from gpusim.prediction.clock.scheduler import POLICIES
from gpusim.prediction.compiled import clock as fast_clock
from gpusim.prediction.compiled import evaluator
from gpusim.prediction.memory import MemoryShare, Source, Sources, Stored
from gpusim.prediction.memory.atomics import AtomicLoad
from gpusim.prediction.sweeps import jobs
from gpusim.wasm.image import Image

# -- plays -----------------------------------------------------------------------------------

INT32, FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)
SHARED, GLOBAL = Memory("shared", "shared", INT32, size=4096), Memory("global", "numbers", INT32)
FLOATING = Memory("global", "sums", FLOAT32)
INSTRUCTIONS = [
    Instruction("LOP3", (2,), (0,), INT32),
    Instruction("LOP3", (0,), (1, 2), INT32),
    Instruction("FFMA", (3,), (1, 2), FLOAT32),
    Instruction("MUFU", (1,), (3,), FLOAT32, detail="rcp"),
    Instruction("S2R", (1,), (), INT32),
    Instruction("SHFL", (1,), (0,), INT32, detail="down"),
    Instruction("LDS", (1,), (0,), INT32, memory=SHARED),
    Instruction("STS", (), (0, 1), INT32, memory=SHARED),
    Instruction("ATOMS", (1,), (0, 2), INT32, memory=SHARED, detail="add"),
    Instruction("LDG", (1,), (0,), INT32, memory=GLOBAL),
    Instruction("STG", (), (0, 1), INT32, memory=GLOBAL),
    Instruction("RED", (), (0, 1), INT32, memory=GLOBAL, detail="add"),
    Instruction("ATOMG", (1,), (0, 1), FLOAT32, memory=FLOATING, detail="add"),
    Instruction("BAR", detail="sync"),
    Instruction("BRA"),
]


@st.composite
def plays(draw: st.DrawFn) -> dict[str, Any]:
    """Blocks of warps that run a few instructions, on a device of some policy and rates."""
    gpu = draw(st.sampled_from([plain_device(), *map(device.load, ("h200", "gtx1650", "k40m"))]))
    off = draw(st.sampled_from([(), ("barriers",), ("block-launch", "bank-conflicts")]))
    gpu = replace(gpu, sm=replace(gpu.sm, policy=draw(st.sampled_from(list(POLICIES)))))
    hit, miss = draw(st.floats(0, 1)), draw(st.floats(0, 1))
    first = Source(miss, draw(st.floats(0, 1)), hit, 0.0, 1.4)
    again = Source(draw(st.floats(0, 1)), 0.5, draw(st.floats(0, 1)), 1.0)
    sources = {-1: Sources(first, again), 1: Sources(Source(0.0, 1.0, 0.5))}
    stored = {-1: Stored(draw(st.floats(0, 1)), 1.3, 0.4)}
    share = MemoryShare(
        draw(st.floats(1, 100)), 64.0, sources, stored, 1.5, 132, 100,
        atomics={2: AtomicLoad(3.7)},
    )  # fmt: skip
    body = draw(st.lists(st.sampled_from(INSTRUCTIONS), min_size=1, max_size=14))
    return {
        "instructions": [*body, Instruction("EXIT")],
        "gpu": gpu.without(*off),
        "warps": draw(st.integers(1, 17)),
        "blocks": draw(st.integers(1, 12)),
        "resident": draw(st.integers(1, 6)),
        "cost": draw(st.integers(0, 32)),
        "share": share,
        "is_taken": draw(st.booleans()),
    }


@settings(max_examples=40)
@given(plays())
def test_random_plays_leave_the_same_behind_in_both_evaluators(play: dict[str, Any]) -> None:
    """All fields of all that is left: the fixture of these tests compares them."""
    assert simulate(**play).instructions > 0


def test_a_prediction_is_the_same_without_the_compiled_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def predicted() -> dict[str, Any]:
        return jobs.catalogue_job(Request("reduce3", 2**18, block=128)).on("h200").to_dict()

    compiled = predicted()
    monkeypatch.setenv(fast.SWITCH, "0")
    assert predicted() == compiled


@pytest.mark.parametrize("are_few", [True, False])
def test_few_steps_that_lie_in_memory_already_are_not_brought_again(
    are_few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block alone runs the same steps as those of a full SM, which was played before."""
    program_steps.program_steps.cache_clear()  # from another test
    if not are_few:
        monkeypatch.setattr(fast_clock, "_MOST_STEPS_BYTES", 0)
    brought: list[int] = []
    compiled_play, add = fast_clock.CompiledClock.play, Image.add_list

    def play(clock: fast_clock.CompiledClock, sm: StreamingMultiprocessor) -> None:
        brought.append(0)
        compiled_play(clock, sm)

    def add_list(image: Image, element: type, items: Any) -> None:
        brought[-1] += 1
        add(image, element, items)

    monkeypatch.setattr(fast_clock.CompiledClock, "play", play)
    monkeypatch.setattr(Image, "add_list", add_list)
    jobs.catalogue_job(Request("reduce3", 2**18, block=128)).on("h200")
    assert brought[0] > 0
    assert (brought[-1] == 0) == are_few


# -- where it is had from --------------------------------------------------------------------


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gpusim" / "clock"


def test_a_module_is_compiled_once_and_a_damaged_one_again(empty_cache: Path) -> None:
    fast_clock.CompiledClock()
    [entry] = empty_cache.iterdir()
    whole, number = entry.read_bytes(), entry.stat().st_ino
    fast_clock.CompiledClock()
    assert entry.stat().st_ino == number  # not written again
    entry.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    fast_clock.CompiledClock()
    assert entry.read_bytes() == whole


def test_a_module_of_another_version_is_compiled_again(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is whole, but wasmtime does not take it."""
    fast_clock.CompiledClock()
    [entry] = empty_cache.iterdir()
    fast_clock._MODULES.store(entry.name, b"what another version compiled")
    fast_clock.CompiledClock()
    assert len(entry.read_bytes()) > 10_000


WITHOUT = """
import sys
from gpusim.__main__ import entry_point
sys.argv = ["gpusim", "predict", "reduce1", "-n", "4096"]
try:
    entry_point()
except SystemExit as end:
    assert not end.code
print("wasmtime" in sys.modules)
"""


def test_the_switch_leaves_all_to_simpy(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {}
    for value in ("0", "1"):
        monkeypatch.setenv(fast.SWITCH, value)
        ran = subprocess.run(
            [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
        )
        *said[value], is_loaded = ran.stdout.splitlines()
        assert is_loaded == str(value == "1")
    assert said["0"] == said["1"]


def test_a_machine_that_is_not_served_is_told_once_and_simpy_plays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise RuntimeError("unsupported architecture: abacus")

    monkeypatch.setattr(fast_clock, "CompiledClock", refuse)
    evaluator.clock.cache_clear()
    fast.say.cache_clear()
    with pytest.warns(RuntimeWarning, match="abacus") as told:
        made = [simulate([Instruction("EXIT")]).cycles for _ in range(2)]
    evaluator.clock.cache_clear()
    assert made == [1, 1]
    assert len(told) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold to the limit")
def test_a_limit_on_addresses_is_kept_to(empty_cache: Path) -> None:
    """`ulimit -v`: what the module reserves elsewhere, 4 GB of addresses, is not to be had."""
    limited = "import resource as r; r.setrlimit(r.RLIMIT_AS, (2**31, 2**31))" + WITHOUT
    ran = subprocess.run(
        [sys.executable, "-c", limited], capture_output=True, text=True, check=False
    )
    (said,) = ran.stderr.splitlines()
    assert "an unlimited address space (ulimit -v): Python and SimPy run, slower" in said
    assert ran.stdout.endswith("True\n")


SHORT = """
import resource
import gpusim.cli.predict
import gpusim.prediction.sweeps.jobs
with open("/proc/self/statm") as taken:
    most = int(taken.read().split()[0]) * resource.getpagesize() + (60 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold to the limit")
def test_simpy_plays_where_few_addresses_are_left(empty_cache: Path) -> None:
    """Wasmtime would end the process where the system gives it none; 60 MB are left here."""
    ran = subprocess.run(
        [sys.executable, "-c", SHORT + WITHOUT], capture_output=True, text=True, check=True
    )
    assert ran.stderr.count("the process may have too little more memory") == 1
    assert ran.stdout.endswith("False\n")


def test_what_observers_hear_is_played_by_simpy() -> None:
    """Compiled code has no observers."""
    noted = Spans()
    simulate([Instruction("EXIT")], observers=[noted])
    assert [span.reason for span in noted.seen] == ["selected"]
