"""Random rows of machine code run as they would one lane at a time.

The reference has no groups of warps, no renamed registers and no convergence: a lane goes through
the rows by itself and keeps what it has by the hardware's names.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from gpusim import machine
from gpusim.isa.ops import OPS, BankLayout, Instruction
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.launch.prepared import Prepared
from gpusim.sass.cubin import Cubin, KernelCode, Parameter
from gpusim.sass.decoding import Context, Micro, decoded
from gpusim.sass.listing import Place, Row, Section, row_of_text
from gpusim.sass.translate import Code, translate

BLOCKS, THREADS, WORDS = 4, 40, 8
BASE = 1 << 32  # the address of the first array
PARAMETER = 0x210
BEGIN = [
    "LDC.64 R10, c[0x0][0x210]",
    "S2R R8, SR_TID.X",
    "S2R R12, SR_CTAID.X",
    "IMAD R9, R12, 0x40, R8",
    "IMAD.WIDE R10, R9, 0x20, R10",
    "ISETP.NE.AND P5, PT, R8, R8, PT",
    "ISETP.NE.AND P6, PT, R8, R8, PT",
]
END = ["P2R R6, PR, RZ, 0x7f"] + [f"STG.E [R10.64+{4 * n:#x}], R{n}" for n in range(7)] + ["EXIT"]


class Writer:
    """Writes rows of branches, loops, exits and guarded arithmetic."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rows, self.labels = list(BEGIN), dict[str, int]()
        self.count = 0
        for number in range(6):
            by, at = self.random.choice((8, 9)), self.random.randrange(40)
            self.rows.append(f"IMAD R{number}, R{by}, {at + 1:#x}, RZ")
            self.rows.append(f"ISETP.GT.AND P{number % 4}, PT, R{by}, {at:#x}, PT")
        self.block(0)
        self.block(0)
        self.rows += END

    def block(self, depth: int) -> None:
        kinds = [self.compute] * 5 + ([self.branch, self.loop, self.leave] if depth < 4 else [])
        for _ in range(self.random.randrange(2, 7)):
            self.random.choice(kinds)(depth)

    def label(self) -> str:
        self.count += 1
        return f".L{self.count}"

    def place(self, label: str) -> None:
        self.labels[label] = 16 * len(self.rows)

    def guard(self) -> str:
        return f"@{self.random.choice(('', '!'))}P{self.random.randrange(4)} "

    def compute(self, _: int) -> None:
        to, a, b, c = (f"R{self.random.randrange(6)}" for _ in range(4))
        p, q = self.random.sample(("P0", "P1", "P2", "P3"), 2)
        number = self.random.randrange(1, 16)
        chosen = self.random.choice(
            [
                [f"IADD3 {to}, {a}, {b}, {c}"],
                [f"LOP3.LUT {to}, {a}, {b}, {c}, 0x96, !PT"],
                [f"IMAD {to}, {a}, {number:#x}, R8"],
                [f"SEL {to}, {a}, R9, !{p}"],
                [f"ISETP.GT.AND {p}, PT, {a}, {number:#x}, {q}"],
                [f"ISETP.LT.AND {p}, PT, R8, {b}, !{q}"],
                [f"P2R {to}, PR, RZ, {number:#x}"],
                [f"R2P PR, {a}, {number:#x}"],
                [f"IADD3 {to}, {p}, {a}, {b}, RZ", f"IADD3.X {c}, {a}, R8, RZ, {p}, !PT"],
                [f"STG.E [R10.64+{4 * (number % 6):#x}], {a}"],
            ]
        )
        guard = self.guard() if self.random.random() < 0.5 else ""
        self.rows += [guard + row for row in chosen]

    def branch(self, depth: int) -> None:
        other, end = self.label(), self.label()
        self.rows += [f"BSSY B{depth}, `({end})", f"{self.guard()}BRA `({other})"]
        self.block(depth + 1)
        self.place(other)
        if self.random.random() < 0.5:
            self.rows.append(f"{self.guard()}BRA `({end}sync)")
            self.block(depth + 1)
        self.place(f"{end}sync")
        self.rows.append(f"BSYNC B{depth}")
        self.place(end)

    def loop(self, depth: int) -> None:
        top, end, counter = self.label(), self.label(), f"R{20 + depth}"
        times = self.random.choice((1, 3, 7))
        self.rows += [f"LOP3.LUT {counter}, R9, {times:#x}, RZ, 0xc0, !PT"]
        self.rows += [f"BSSY B{depth}, `({end})"]
        self.place(top)
        self.block(depth + 1)
        self.rows.append(f"{self.guard()}BRA `({end}sync)")
        self.compute(depth)
        self.rows += [f"IADD3 {counter}, {counter}, -0x1, RZ"]
        self.rows += [f"ISETP.GT.AND P6, PT, {counter}, RZ, PT", f"@P6 BRA `({top})"]
        self.place(f"{end}sync")
        self.rows.append(f"BSYNC B{depth}")
        self.place(end)

    def leave(self, _: int) -> None:
        which = self.random.choice(("R12", "R8", "R3"))
        self.rows += [f"ISETP.EQ.AND P5, PT, {which}, {self.random.randrange(3):#x}, PT"]
        self.rows += ["@P5 EXIT"]


def word(value: int) -> np.ndarray:
    return np.full((1, 1, 1), value & 0xFFFFFFFF, np.uint32)


def run_lane(micros: list[Micro], labels: dict[str, int], block: int, thread: int) -> dict:
    """Return the words that a lane stores, by address."""
    special = {"tid.x": thread, "ctaid.x": block}
    held: dict[str, np.ndarray] = {"PT": np.ones((1, 1, 1), bool)}
    stored, pc = {}, 0
    while True:
        micro, pc = micros[pc], pc + 1
        guard, op = micro.guard, OPS[micro.op]
        if guard is not None and bool(held[guard.register].item()) is guard.negated:
            continue
        if micro.op == "EXIT":
            return stored
        if micro.op == "BRA":
            pc = labels[micro.label]
            continue
        values = [
            held.get(one, word(0)) if isinstance(one, str) else np.asarray(one).reshape(1, 1, 1)
            for one in micro.sources
        ]
        results: tuple[np.ndarray, ...] = ()
        if op.kind == "special":
            results = (word(special[micro.detail]),)
        elif op.kind == "bank":
            results = (word(BASE), word(BASE >> 32))
        elif op.kind == "store":
            assert micro.memory is not None
            stored[int(values[0].item()) + micro.memory.offset] = int(values[1].item())
        elif op.evaluate is not None:
            row = Instruction(micro.op, dtype=np.dtype(np.uint32), detail=micro.detail)
            results = op.evaluate(row, *values)
        held.update(zip(micro.results, results, strict=False))


def run_lanes(rows: list[Row], labels: dict[str, int]) -> np.ndarray:
    micros = list(decoded(rows, Context(0, labels)))
    first = {micro.row: number for number, micro in reversed(list(enumerate(micros)))}
    places = {name: first[address // 16] for name, address in labels.items()}
    out = np.zeros(64 * BLOCKS * WORDS, np.uint32)
    with np.errstate(all="ignore"):
        for block, thread in np.ndindex(BLOCKS, THREADS):
            for address, value in run_lane(micros, places, block, thread).items():
                out[(address - BASE) // 4] = value
    return out


def run_machine(rows: list[Row], labels: dict[str, int]) -> np.ndarray:
    kernel = KernelCode("k", 32, (Parameter(PARAMETER, 8),), 0, 0)
    cubin = Cubin(90, {"k": kernel}, {}, b"", b"", {}, {})
    code = Code("k", kernel, cubin, Section("k", rows, labels), "rows")
    layout = BankLayout(parameters=(("out", PARAMETER, 8),), words=code.words)
    pointers = {(0, PARAMETER): "out", (0, PARAMETER + 4): "out"}
    program = translate(code, layout, pointers)
    out = np.zeros(64 * BLOCKS * WORDS, np.uint32)
    launch = Launch.of(BLOCKS, THREADS)
    machine.run(Prepared(program, launch, {"out": out}, ComputeCapability(9, 0)))
    return out


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_rows_do_what_each_lane_would_do_by_itself(first: int) -> None:
    for seed in range(100 * first, 100 * first + (4 if first == 0 else 100)):
        written = Writer(seed)
        rows = [
            replace(row_of_text(text), address=16 * n, place=Place("rows", n + 1))
            for n, text in enumerate(written.rows)
        ]
        expected = run_lanes(rows, written.labels)
        assert (run_machine(rows, written.labels) == expected).all(), f"seed {seed}"
