"""Traces made by hand: what `reduce2` and single accesses do, worked out lane by lane.

It shares no code with the machine or the observers: banks, wavefronts and sectors are
counted here by listing what each lane touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpusim.launch.grid import Launch
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.execution import Execution
from gpusim.tracing.records import LineCounters, Trace, WarpCounters

COUNTER_NAMES = tuple(COUNTERS)

REDUCE2 = {
    20: "tid = np.uint32(cuda.threadIdx.x)",
    24: "sdata[tid] = g_idata[i] if i < n else 0",
    25: "cuda.syncthreads()",
    27: "s = np.uint32(1)",
    28: "while s < cuda.blockDim.x:",
    29: "    index = 2 * s * tid",
    30: "    if index < cuda.blockDim.x:",
    31: "        sdata[index] += sdata[index + s]",
    32: "    cuda.syncthreads()",
    33: "    s *= 2",
    35: "if tid == 0:",
    36: "    g_odata[cuda.blockIdx.x] = sdata[0]",
}

Lanes = Sequence[bool]


def access(
    pc: int,
    line: int,
    op: str,
    warp: int,
    occurrence: int,
    elements: Sequence[int | None],
    *,
    space: str = "shared",
    array: str = "sdata",
    element_bytes: int = 4,
) -> Execution:
    """One access: the element that each lane touches, None for a lane that is guarded off."""
    on = tuple(element is not None for element in elements)
    addresses = tuple(-1 if e is None else e * element_bytes for e in elements)
    together = 32 if element_bytes <= 4 else 128 // element_bytes
    passes = [
        _deepest(addresses[first : first + together], element_bytes)
        for first in range(0, 32, together)
    ]
    sectors = {address // 32 for address, lane_on in zip(addresses, on, strict=True) if lane_on}
    shared = space == "shared"
    return Execution(
        pc=pc,
        line=line,
        op=op,
        warp=warp,
        occurrence=occurrence,
        active=(True,) * 32,
        on=on,
        space=space,
        array=array,
        element_bytes=element_bytes,
        width_bytes=element_bytes,
        addresses=addresses,
        banks=tuple(a // 4 % 32 if a >= 0 else -1 for a in addresses) if shared else None,
        wavefronts=sum(passes) if shared else 0,
        least_wavefronts=sum(depth > 0 for depth in passes) if shared else 0,
        sectors=0 if shared else len(sectors),
    )


def _deepest(addresses: Sequence[int], element_bytes: int) -> int:
    """The most different words that one bank is asked for; -1 is a lane that is off."""
    words = {
        (address + byte) // 4
        for address in addresses
        if address >= 0
        for byte in range(element_bytes)
    }
    return max(Counter(word % 32 for word in words).values(), default=0)


def branch(
    pc: int, line: int, warp: int, occurrence: int, taken: Lanes, op: str = ".IF"
) -> Execution:
    """One conditional and the lanes for which it is true."""
    everyone = (True,) * 32
    return Execution(
        pc, line, op, warp, occurrence, active=everyone, on=everyone, taken=tuple(taken)
    )


def plain(pc: int, line: int, op: str, warp: int, occurrence: int = 0) -> Execution:
    """An instruction that neither touches memory nor branches."""
    everyone = (True,) * 32
    return Execution(pc, line, op, warp, occurrence, active=everyone, on=everyone)


def trace_of(
    executions: Sequence[Execution],
    texts: dict[int, str] | None = None,
    *,
    block: int = 128,
    grid: int = 1,
    kernel: str = "reduce2",
) -> Trace:
    """The trace of a launch whose blocks all do these executions."""
    texts = texts or {}
    by_line: dict[int, Counter[str]] = {line: Counter() for line in texts}
    by_warp: dict[int, Counter[str]] = {}
    runs: Counter[int] = Counter()
    lanes: Counter[int] = Counter()
    for execution in executions:
        counted = _counted(execution)
        by_line.setdefault(execution.line, Counter()).update(counted)
        by_warp.setdefault(execution.warp, Counter()).update(counted)
        runs[execution.line] = max(runs[execution.line], 1)
        lanes[execution.line] += sum(execution.on)
    for line in by_line:
        runs[line] = sum(1 for e in executions if e.line == line)
    totals: Counter[str] = Counter()
    for counted in by_line.values():
        totals.update(counted)
    return Trace(
        kernel=kernel,
        launch=Launch.of(grid, block),
        lowering="O3",
        cc="9.0",
        counters={name: totals[name] * grid for name in COUNTER_NAMES},
        lines=[
            LineCounters(
                line=line,
                text=texts.get(line, "..."),
                executions=runs[line] * grid,
                active_lanes=lanes[line] / runs[line] if runs[line] else 0.0,
                counters={name: counted[name] * grid for name in COUNTER_NAMES},
            )
            for line, counted in sorted(by_line.items())
        ],
        warps=[
            WarpCounters(0, warp, {name: counted[name] for name in COUNTER_NAMES})
            for warp, counted in sorted(by_warp.items())
        ],
        blocks=[],  # type: ignore[arg-type]
        executions=list(executions),
        block_index=0,
        source_file="kernels.py",
        traced_blocks=grid,
    )


def _counted(execution: Execution) -> dict[str, int]:
    if execution.op == ".IF":
        taken = execution.taken or ()
        return {
            "source_branches": 1,
            "source_divergent_branches": int(any(taken) and not all(taken)),
        }
    counted = {
        "instructions": 1,
        "thread_instructions": sum(execution.active),
        "thread_instructions_guard_on": sum(execution.on),
        "barriers": int(execution.op == "BAR"),
    }
    if execution.space is not None:
        kind = f"{execution.space}_{'load' if execution.op.startswith('LD') else 'store'}"
        counted[f"{kind}_instructions"] = 1
        if execution.space == "shared":
            counted[f"{kind}_wavefronts"] = execution.wavefronts
            counted[f"{kind}_bank_conflicts"] = execution.wavefronts - execution.least_wavefronts
        else:
            counted[f"{kind}_requests"] = int(any(execution.on))
            counted[f"{kind}_sectors"] = execution.sectors
    return counted


def reduce2(block: int = 128, grid: int = 8) -> Trace:
    """Strided indexing with bank conflicts: lane tid adds sdata[2*s*tid + s]."""
    executions: list[Execution] = []
    for warp in range(block // 32):
        tids = range(32 * warp, 32 * warp + 32)
        executions.append(branch(1, 24, warp, 0, (True,) * 32))
        executions.append(access(2, 24, "LDG", warp, 0, tids, space="global", array="g_idata"))
        executions.append(access(3, 24, "STS", warp, 0, tids))
        executions.append(plain(4, 25, "BAR", warp))
        stride, step = 1, 0
        while stride < block:
            first = [2 * stride * t if 2 * stride * t < block else None for t in tids]
            second = [None if element is None else element + stride for element in first]
            executions.append(branch(6, 30, warp, step, [element is not None for element in first]))
            executions.append(access(7, 31, "LDS", warp, step, first))
            executions.append(access(8, 31, "LDS", warp, step, second))
            executions.append(access(9, 31, "STS", warp, step, first))
            executions.append(plain(10, 32, "BAR", warp, step))
            stride, step = 2 * stride, step + 1
        zero = [0 if t == 0 else None for t in tids]
        executions.append(branch(12, 35, warp, 0, [t == 0 for t in tids]))
        executions.append(access(13, 36, "LDS", warp, 0, zero))
        executions.append(access(14, 36, "STG", warp, 0, zero, space="global", array="g_odata"))
    return trace_of(executions, REDUCE2, block=block, grid=grid)
