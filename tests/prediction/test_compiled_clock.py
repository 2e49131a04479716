"""The compiled clock: what it translates computes as Python does, and plays as SimPy does."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wasmtime
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prediction.test_clock import Spans, plain_device, simulate

from gpusim.catalogue import Request
from gpusim.gpu import device
from gpusim.gpu.memory import LINE_BYTES
from gpusim.host import fast
from gpusim.isa.ops import Instruction, Memory
from gpusim.prediction.arithmetic import elementary
from gpusim.prediction.clock import program_steps, simulation
from gpusim.prediction.clock.multiprocessor import StreamingMultiprocessor
from gpusim.prediction.clock.policies import POLICIES
from gpusim.prediction.compiled import clock as fast_clock
from gpusim.prediction.compiled import evaluator
from gpusim.prediction.compiled import module as fast_module
from gpusim.prediction.compiled.image import Image
from gpusim.prediction.compiled.sources import NotTranslatedError
from gpusim.prediction.memory import MemoryShare, Source, Sources, Stored
from gpusim.prediction.sweeps import jobs


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as it is compiled."""
    engine = wasmtime.Engine()
    text = fast_module.module_of(function, {})
    module = wasmtime.Module(engine, wasmtime.wat2wasm(text))
    store = wasmtime.Store(engine)
    exports = wasmtime.Instance(store, module, []).exports(store)

    def call(*arguments: float) -> Any:
        result = exports[function.__name__](store, *arguments)
        return tuple(result) if isinstance(result, list) else result

    return call


WHOLE = st.integers(-(2**40), 2**40)
FLOATS = st.floats(-1e15, 1e15)


# -- operators, one by one -----------------------------------------------------------------


def divided_down(a: int, b: int) -> int:
    return a // b


def rest(a: int, b: int) -> int:
    return a % b


def by_sixteen(a: int, b: int) -> int:
    return a // 16 * 1000 + a % 16 + b


def quotient(a: int, b: int) -> float:
    return a / b


def product(a: int, b: int) -> int:
    return a * b - (a + b) * -a


def low_bits(a: int, b: int) -> float:
    return (a * (b * b + 1) + b) * 0x9E3779B97F4A7C15 % 18446744073709551616 / 18446744073709551616


def extremes(a: int, b: int) -> int:
    return min(a, b, 7) * 3 + max(a, 5, b)


def chain(a: int, b: int) -> bool:
    return a > b > 0 or not (a == b or b != 3)


def chosen(a: int, b: int) -> int:
    return a if a and b else -b


@pytest.mark.parametrize(
    "function",
    [divided_down, rest, by_sixteen, quotient, product, low_bits, extremes, chain, chosen],
)
def test_operators_of_whole_numbers_compute_as_in_python(function: Callable[..., Any]) -> None:
    run = compiled(function)

    @settings(max_examples=60, deadline=None)
    @given(WHOLE, WHOLE.filter(bool))
    @example(-7, 2)
    @example(7, -2)
    @example(-16, 16)
    @example(4, 3)
    def compare(a: int, b: int) -> None:
        small = function in (product, low_bits)
        a, b = (a >> 12, b >> 12 or 1) if small else (a, b)
        assert run(a, b) == function(a, b)

    compare()


def rounded(a: float, b: float) -> int:
    return round(a) + round(b / 2) * 2


def cut(a: float, b: float) -> int:
    return int(a) - int(b)


def fraction(a: float, b: float) -> float:
    return (a + b) % 1.0


def sums(a: float, b: float) -> float:
    return a * b + a - b / 3.0 - -a


def mixed(a: float, b: float) -> float:
    return 3 * a + (1 if a < b else 2)


def float_extremes(a: float, b: float) -> float:
    return max(a, b) - min(a, b, 0.5)


def logarithm(a: float, b: float) -> float:
    return elementary.log(abs_of(a) + 1e-9) + elementary.exp(-abs_of(b) / 1e6)


def root(a: float, b: float) -> float:
    return elementary.power(max(fraction(a, b), 1e-30), 0.3)


def abs_of(a: float) -> float:
    return -a if a < 0 else a


def parts(a: float, b: float) -> tuple[float, int]:
    mantissa, exponent = math.frexp(a * a + 1e-3)
    return math.ldexp(mantissa, exponent - 3) + b, exponent


@pytest.mark.parametrize(
    "function",
    [rounded, cut, fraction, sums, mixed, float_extremes, logarithm, root, parts],
)
def test_operators_of_floats_compute_as_in_python(function: Callable[..., Any]) -> None:
    """To the last bit; rounding is half to even."""
    run = compiled(function)

    @settings(max_examples=60, deadline=None)
    @given(FLOATS, FLOATS)
    @example(0.5, 1.5)
    @example(2.5, -3.0)
    @example(-0.5, 5.0)
    def compare(a: float, b: float) -> None:
        assert run(a, b) == function(a, b)

    compare()


# -- lists, objects and loops ----------------------------------------------------------------


def sorted_pairs(seed: int, n: int) -> int:
    """Sort pairs, take them from the front, and return them as one number."""
    pairs: list[tuple[int, int]] = []
    for number in range(n):
        seed = seed * 1103515245 % 1000003
        insort(pairs, (seed % 17, number))
    mixed = 0
    while pairs:
        key, number = pairs[0]
        del pairs[0]
        mixed = (mixed * 31 + key * 64 + number) % 1000003
    return mixed


def taken_from_the_end(seed: int, n: int) -> int:
    """Sort pairs, take them from the end, all but the first; return them as one number."""
    pairs: list[tuple[int, int]] = []
    for number in range(n):
        seed = seed * 1103515245 % 1000003
        insort(pairs, (-(seed % 17), number))
    mixed = 0
    while len(pairs) > 1:
        key, number = pairs[-1]
        del pairs[-1]
        mixed = (mixed * 31 - key * 64 + number + pairs[-1][1]) % 1000003
    return mixed


def inserted(seed: int, n: int) -> int:
    """Insert, delete and look for numbers; return all as one."""
    items: list[int] = []
    for number in range(n):
        seed = seed * 1103515245 % 1000003
        insort(items, seed % 50)
        if number % 3 == 2:
            del items[seed % len(items)]
    mixed = 1 if 7 in items else 0
    for place, item in enumerate(items):
        if item == 13:
            continue
        if item > 45:
            break
        mixed = (mixed * 31 + item + place) % 1000003
    items.clear()
    return mixed + len(items)


@dataclass
class Pair:
    """A dataclass, with a default."""

    first: int
    second: float = 0.5

    def sum(self, *, times: int) -> float:
        return (self.first + self.second) * times


class Chained:
    """A class with an `__init__`, and another object of its kind or None."""

    pair: Pair
    counts: list[int]
    before: Chained | None

    def __init__(self, pair: Pair, before: Chained | None) -> None:
        self.pair = pair
        self.counts = [3] * 4
        self.before = before


def of_objects(seed: int, n: int) -> int:
    last: Chained | None = None
    for number in range(n):
        last = Chained(Pair(number), last)
        last.counts[number % 4] += seed
    total = 0.0
    while last is not None:
        last.pair.second += 1
        total += last.pair.sum(times=2) + last.counts[0]
        last = last.before
    return round(total)


def first_above(items: list[int], least: int) -> int:
    for place, item in enumerate(items):
        if item > least:
            return place
    return -1


def factorial(n: int) -> int:
    return n * factorial(n - 1) if n > 1 else 1


def of_small_functions(seed: int, n: int) -> int:
    """What is written out where it is called returns from there alone, and may call itself."""
    items: list[int] = []
    found = 0
    for number in range(n):
        items.append(seed * number % 19)
        found = found * 7 + first_above(items, number % 5) - first_above(items, 17)
        found = found % 1000003 + factorial(number % 7)
    return found


FIRST, SECOND = divided_down, rest
BOTH = (FIRST, SECOND)


def of_a_table(a: int, b: int) -> int:
    return BOTH[a % 2](a, b + 1)


MANY = (divided_down, rest, product, extremes, chosen, by_sixteen)


def of_a_long_table(a: int, b: int) -> int:
    return MANY[a % 6](a, b + 1)


def beyond_a_table(a: int, b: int) -> int:
    return BOTH[a](b, 3)


@pytest.mark.parametrize(
    "function",
    [
        sorted_pairs,
        taken_from_the_end,
        inserted,
        of_objects,
        of_small_functions,
        of_a_table,
        of_a_long_table,
    ],
)
def test_lists_objects_and_tables_do_as_in_python(function: Callable[..., Any]) -> None:
    run = compiled(function)
    for seed, n in ((1, 1), (2, 40), (77, 200), (4242, 25)):
        assert run(seed, n) == function(seed, n)


def element(a: int, b: int) -> int:
    items = [5] * 3
    return items[a] + b


def last_element(a: int, b: int) -> int:
    items = [5] * a
    return items[-1] + b


def without_the_last(a: int, b: int) -> int:
    items = [5] * a
    del items[-1]
    return len(items) + b


def quotient_of_floats(a: float, b: float) -> float:
    return a / b


def test_what_python_raises_is_a_trap() -> None:
    """An index outside of a list or a table, a division by zero."""
    assert compiled(element)(2, 1) == 6
    assert compiled(last_element)(1, 1) == 6
    assert compiled(without_the_last)(1, 1) == 1
    assert compiled(beyond_a_table)(1, 7) == 1
    for function, arguments in (
        (element, (3, 1)),
        (last_element, (0, 1)),
        (without_the_last, (0, 1)),
        (beyond_a_table, (2, 7)),
        (divided_down, (1, 0)),
        (rest, (1, 0)),
        (quotient_of_floats, (1.0, 0.0)),
    ):
        with pytest.raises(wasmtime.Trap):
            compiled(function)(*arguments)


# -- what is refused -------------------------------------------------------------------------


def with_a_comprehension(a: int) -> int:
    return max([b * b for b in range(a)])


def with_a_dictionary(a: int) -> int:
    there = {1: a}
    return there[1]


def with_a_text(a: int) -> int:
    return len("text") + a


def with_a_library(a: float) -> float:
    return math.sin(a)


def with_two_kinds(a: int) -> float:
    b = 1
    if a:
        b = 2.5 * a  # type: ignore[assignment]
    return b


def with_a_foreign_number(a: int) -> int:
    return a + LINE_BYTES


@pytest.mark.parametrize(
    ("function", "message", "marked"),
    [
        (
            with_a_comprehension,
            "the extreme of a list is not played",
            "max([b * b for b in range(a)])",
        ),
        (with_a_dictionary, "Dict is not played", "{1: a}"),
        (with_a_text, "Constant is not played", '"text"'),
        (with_a_library, "sin> is not played", "math.sin(a)"),
        (with_two_kinds, "this is float, where int is expected", "2.5 * a"),
        (with_a_foreign_number, "a number of gpusim.gpu.memory is not known", "LINE_BYTES"),
    ],
)
def test_what_is_not_played_is_refused_with_line_and_caret(
    function: Callable[..., Any], message: str, marked: str
) -> None:
    with pytest.raises(NotTranslatedError, match=re.escape(message)) as caught:
        fast_module.module_of(function, {})
    first, line, carets = str(caught.value).splitlines()
    assert first.startswith(f"{__file__}:")
    begin = carets.index("^")
    assert line[begin : begin + carets.count("^")] == marked


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
        concurrent_atomics={2: 3.7},
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


@settings(max_examples=60, deadline=None)
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
    program_steps._kept.cache_clear()  # from another test
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


def test_a_module_is_compiled_once_and_a_damaged_one_again(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast_clock.CompiledClock()
    [entry] = empty_cache.iterdir()
    whole = entry.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(fast_module, "module_of", lambda *_: pytest.fail("translated again"))
        fast_clock.CompiledClock()
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
        [sys.executable, "-W", "error", "-c", limited], capture_output=True, text=True, check=False
    )
    assert ran.stderr == ""
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


def test_what_observers_hear_is_played_by_simpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "is_played", lambda _: pytest.fail("nobody would hear"))
    noted = Spans()
    simulate([Instruction("EXIT")], observers=[noted])
    assert [span.reason for span in noted.seen] == ["selected"]
