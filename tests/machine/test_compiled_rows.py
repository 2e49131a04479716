"""Vector code of every form of every row computes what its evaluator computes, bit for bit.

Rows are tried with their modifiers one by one and some together, on edges and random words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import wasmtime

import gpusim.sass.translate  # noqa: F401
from gpusim.machine.compiled import layout
from gpusim.machine.compiled.segment import Operand, Place, Segment
from gpusim.machine.compiled.symbols import NotDerivedError, tracing
from gpusim.machine.warps import vectors
from gpusim.sass.form import REGISTERS, Form, Signs
from gpusim.sass.table import MNEMONICS, Mnemonic
from gpusim.wasm.interpreted import Interpreted
from gpusim.wasm.memory import TrapError

Array = np.ndarray[Any, np.dtype[Any]]
TIMES = 24
EDGES = np.array([
    0, 1, 2, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF,
    0x80000000, 0x80000001, 0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7F7FFFFF,
    0x00800000, 0x00000001, 0x007FFFFF, 0x40490FDB, 0x4F000000, 0xCF000000, 0x3C003C00, 0x7BFF0001,
], np.uint32)  # fmt: skip
TOGETHER = (
    {"LT", "AND"}, {"GE", "OR"}, {"EQ", "XOR"}, {"NEU", "AND"}, {"LTU", "OR"}, {"NUM", "AND"},
    {"L", "W"}, {"L", "HI", "U64"}, {"R", "S64", "HI"}, {"R", "U32"},
)  # fmt: skip


def forms() -> Iterator[Form]:
    """Yield forms of the rows that only compute; some of them no compiler writes."""
    random = np.random.default_rng(1)
    for name, row in MNEMONICS.items():
        if row.kind != "compute" or row.evaluate is None:
            continue
        must, _, may = row.sources.partition("|")
        own = frozenset(name.split(".")[1:])
        extras = [set(), *({one} for one in sorted(row.modifiers)), *TOGETHER]
        for sources in (must, must + may) if may else (must,):
            for extra in extras:
                if extra <= row.modifiers:
                    for negated in (False, True):
                        yield form_of(row, name, sources, own | extra, negated, random)


def form_of(
    row: Mnemonic,
    name: str,
    sources: str,
    modifiers: frozenset[str],
    negated: bool,
    random: np.random.Generator,
) -> Form:
    """Return a row's form with modifiers, and signs on every other operand."""
    signed = not modifiers & {"U32", "U64"}
    found, _, optional = row.results.partition("|")
    results = optional + found if row.results.startswith("|") else found + optional

    def codes(text: str) -> str:
        kinds = {"x": "ui"[signed], "X": "UI"[signed], "v": "p", "?": "p" * 7}
        return "".join(kinds.get(code, code) for code in text)

    taken = codes(sources.replace("#", ""))
    numbers = tuple(random.integers(0, 31, sources.count("#")).tolist())
    signs = tuple(
        Signs(negated=negated and code in "rRifdIpU" and not n % 2) for n, code in enumerate(taken)
    )
    given = codes(results)
    kept = tuple(range(len(given)))
    assert row.evaluate is not None
    return Form(name, row.evaluate, modifiers, taken, given, signs, kept, numbers)


def operands(form: Form, random: np.random.Generator) -> list[Array]:
    """Return registers for a form, shaped (TIMES, 1, 32): edges, noise and small numbers."""
    made = []
    for code in form.sources:
        for _ in range(REGISTERS[code]):
            kind = random.integers(0, 4, (TIMES, 1, 32))
            words = random.integers(0, 2**32, kind.shape, dtype=np.uint32)
            reals = random.normal(0, 10, kind.shape).astype(np.float32).view(np.uint32)
            edges = EDGES[random.integers(0, len(EDGES), kind.shape)]
            found = np.choose(kind, [words, reals, edges, words & 63])
            made.append(found % 2 == 1 if code == "p" else found)
    return made


def derived(form: Form, number: int, given: list[Array]) -> tuple[str, list[str]] | None:
    """Return the code of a form between fixed addresses, None for one that is called."""
    segment = Segment(_nowhere, _nowhere)
    places = [
        Place(layout.operand(n), np.dtype(np.bool_ if one.dtype == bool else np.uint32), "absolute")
        for n, one in enumerate(given)
    ]
    with tracing():
        try:
            results = form.computed(*(segment.leaf(place) for place in places))
        except (NotDerivedError, TypeError, ValueError, AttributeError, IndexError):
            return None
    if not segment.has_code(results):
        return None
    put = [
        Operand(
            layout.result(n), value if hasattr(value, "graph") else np.asarray(value).reshape(-1)[0]
        )
        for n, value in enumerate(results)
    ]
    code, _, variables = segment.text((), put)
    return code, variables


def _nowhere(register: int) -> Any:
    raise AssertionError(register)


Run = Callable[[str], Any]  # a function by its name


def compiled(text: str) -> tuple[Array, Run]:
    config = wasmtime.Config()
    config.wasm_relaxed_simd_deterministic = True
    engine = wasmtime.Engine(config)
    store = wasmtime.Store(engine)
    exports: Any = wasmtime.Instance(store, wasmtime.Module(engine, text), []).exports(store)
    memory = np.frombuffer(exports["memory"].get_buffer_ptr(store), np.uint8)

    def run(name: str) -> None:
        try:
            exports[name](store)
        except wasmtime.Trap as error:
            raise TrapError from error

    return memory, run


def interpreted(text: str) -> tuple[Array, Run]:
    one = Interpreted([text], vectors.FUNCTIONS, {}, 2)
    return one.memory, one.call


def wrong(
    found: list[tuple[Form, list[Array], list[Array]]],
    linked: Callable[[str], tuple[Array, Run]],
) -> tuple[list[str], int]:
    """Return forms with lanes that are not the evaluator's, and how many have no code."""
    functions = []
    for number, (form, given, _) in enumerate(found):
        made = derived(form, number, given)
        code, variables = made or ("", [])
        functions.append(
            f'(func $f{number} (export "f{number}") (local $W i32) (local $M i32) (local $g i32)'
            f" (local $o i32) (local $r i32) (local $d i32) (local $mask v128)"
            f" {' '.join(variables)}"
            f"(local.set $M (i32.const -1)) {code or '(unreachable)'})"
        )
    parts = ("recording", "detecting", "checking", "in_order", "by_clock")
    runtime = layout.runtime(**dict.fromkeys(parts, False))
    text = f"""(module (memory (export "memory") 2) (func $warp (param i32 i32))
(func $start (param i32)) (func $drain) (func $bring (param i32 i32))
(func $progress (param i32) (result i32) (i32.const 0))
{runtime} {" ".join(functions)})"""
    memory, run = linked(text)
    bad, called = [], 0
    for number, (form, given, expected) in enumerate(found):
        for turn in range(TIMES):
            for n, register in enumerate(given):
                write(memory, layout.operand(n), register[turn, 0])
            try:
                run(f"f{number}")
            except TrapError:
                called += 1
                break
            if any(
                not np.array_equal(read(memory, layout.result(n), one), _bits(one, turn))
                for n, one in enumerate(expected)
            ):
                bad.append(f"{form.name} {sorted(form.modifiers)} {form.sources} {form.signs}")
                break
    return bad, called


def write(memory: Array, address: int, lanes: Array) -> None:
    held = np.packbits(lanes, bitorder="little") if lanes.dtype == bool else lanes.view(np.uint8)
    memory[address : address + held.nbytes] = held


def read(memory: Array, address: int, like: Array) -> Array:
    return memory[address : address + (4 if like.dtype == bool else 128)]


def _bits(expected: Array, turn: int) -> Array:
    lanes = np.broadcast_to(expected, (TIMES, 1, 32))[turn, 0]
    held: Array = (
        np.packbits(lanes, bitorder="little")
        if lanes.dtype == bool
        else lanes.copy().view(np.uint8)
    )
    return held


def tried(chosen: Iterator[Form]) -> Iterator[tuple[Form, list[Array], list[Array]]]:
    """Yield forms that there are, with registers and their results."""
    random = np.random.default_rng(2)
    for form in chosen:
        if not REGISTERS.keys() >= set(form.sources):
            continue
        given = operands(form, random)
        try:
            with np.errstate(all="ignore"):
                yield form, given, list(form.computed(*given))
        except Exception:  # a form that no compiler writes
            continue


@pytest.mark.parametrize("every", [97, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("linked", [compiled, interpreted])
def test_vector_code_of_a_row_is_its_evaluator(
    every: int, linked: Callable[[str], tuple[Array, Run]]
) -> None:
    found = tried(islice(forms(), 0, None, every))
    bad: list[str] = []
    called = count = 0
    while some := list(islice(found, 50)):
        more, without = wrong(some, linked)
        bad, called, count = bad + more, called + without, count + len(some)
    assert bad == []
    assert called < count // 2
