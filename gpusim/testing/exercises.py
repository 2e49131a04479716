"""Exercises of the tour and of the lessons: an answer is compared with a run of the simulator.

No answer is written down. A number is compared with a counter of a run, a kernel runs, is checked
for races, and has its results and counters compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from gpusim.errors import GpusimError, InputError, did_you_mean

OPEN = ...  # an answer that is not given yet
LEAST_CLOSE = 1e-6  # relative difference of equal numbers


@dataclass(frozen=True)
class Exercise:
    """An exercise: its name, the kind of its answer, a hint, and the judgement of an answer.

    `judge` returns the sentence for a right answer; it raises AssertionError with the fault of a
    wrong one.
    """

    name: str
    answer: str
    hint: str
    judge: Callable[[Any], str]


@dataclass(frozen=True)
class Verdict:
    """The verdict on an answer; true in a condition for a right one."""

    exercise: str
    is_right: bool
    message: str

    def __bool__(self) -> bool:
        return self.is_right

    def __str__(self) -> str:
        return f"{self.exercise}: {self.message}"


EXERCISES: dict[str, Exercise] = {}


def judged(name: str, answer: Any = OPEN) -> Verdict:
    """Return the verdict on an answer; `...` counts as unanswered.

    InputError where there is no such exercise.
    """
    if name not in EXERCISES:
        near = did_you_mean(name, EXERCISES)
        raise InputError(f"there is no exercise {name!r}{near}; there are {', '.join(EXERCISES)}")
    asked = EXERCISES[name]
    if answer is OPEN:
        return Verdict(name, False, f"give {asked.answer} in place of ...")
    try:
        return Verdict(name, True, f"right: {asked.judge(answer)}")
    except AssertionError as error:
        return Verdict(name, False, f"not yet: {error}. Hint: {asked.hint}")
    except GpusimError as error:
        return Verdict(name, False, f"not yet: the kernel does not run: {error}")


def exercise(name: str, answer: Any = OPEN) -> None:
    """Print the verdict on an answer; `...` counts as unanswered."""
    print(judged(name, answer))


def _number(name: str, unit: str, hint: str) -> Callable[[Callable[[], float]], None]:
    """Register an exercise whose answer is the number that a function finds by a run."""

    def register(found: Callable[[], float]) -> None:
        def judge(answer: Any) -> str:
            if not isinstance(answer, Real) or isinstance(answer, bool):
                raise AssertionError(f"the answer is a number of {unit}, not {answer!r}")
            given, right = float(answer), found()
            if abs(given - right) > LEAST_CLOSE * abs(right):
                raise AssertionError(f"a run does not give {given:,.6g} {unit}")
            return f"{right:,.6g} {unit}"

        EXERCISES[name] = Exercise(name, f"a number of {unit}", hint, judge)

    return register


def _kernel(name: str, hint: str) -> Callable[[Callable[[Any], str]], None]:
    """Register an exercise whose answer is a kernel that a function judges."""

    def register(judge_kernel: Callable[[Any], str]) -> None:
        def judge(answer: Any) -> str:
            if not hasattr(answer, "__getitem__") or not hasattr(answer, "source"):
                raise AssertionError(f"the answer is a kernel, not {type(answer).__name__}")
            return judge_kernel(answer)

        EXERCISES[name] = Exercise(name, "a kernel", hint, judge)

    return register


def _traced(name: str, n: int, block: int, grid: int | None = None) -> Any:
    """Return the trace of a reduction or a scan of the catalogue."""
    from gpusim import catalogue
    from gpusim.tracing.trace import trace

    entry = catalogue.find(name)
    call = entry.call(catalogue.sample(n, entry.dtypes[0]), block=block, grid=grid)
    return trace(call.configured, *call.arguments, code="lowering")


def _run(configured: Any, *arguments: Any) -> Any:
    from gpusim.tracing.trace import trace

    return trace(configured, *arguments, code="lowering")


# -- the tour --------------------------------------------------------------------------------


@_number(
    "divergent-executions",
    "divergent executions",
    "trace reduce1 with blocks of 64 and read `divergence` in its findings",
)
def _divergent_executions() -> float:
    return float(_traced("reduce1", 64, 64).counters["source_divergent_branches"])


@_number("stride-6", "wavefronts", "the greatest common divisor of the stride and the 32 banks")
def _stride_6() -> float:
    return _wavefronts(6)


def _wavefronts(stride: int) -> float:
    import numpy as np

    from gpusim.testing.exercise_kernels import strided

    trace = _run(strided[1, 32], np.zeros(32, np.int32), np.int32(stride))
    loads = [one for one in trace.executions if one.op.startswith("LDS")]
    return float(loads[-1].wavefronts)


@_number(
    "barriers-of-512",
    "barriers",
    "one after loading, and one in each step of the tree: how often can 512 be halved?",
)
def _barriers_of_512() -> float:
    return _barriers_of_a_warp(_traced("reduce3", 512, 512))


def _barriers_of_a_warp(trace: Any) -> float:
    """Return how often a warp of a launch of one block waits at a barrier."""
    return float(trace.counters["barriers"] / trace.launch.warps_per_block)


@_number(
    "sectors-of-reduce4",
    "sectors",
    "each thread of the 128 loads two elements of 4 bytes; a sector has 32 bytes",
)
def _sectors_of_reduce4() -> float:
    return float(_traced("reduce4", 256, 128).counters["global_load_sectors"])


@_kernel("last-warp", "cuda.syncwarp() separates the store of one lane from the load of another")
def _last_warp(kernel: Any) -> str:
    """A kernel (values, out): the sum of 32 elements by one warp in shared memory."""
    import numpy as np

    values = np.arange(1, 33, dtype=np.int32)
    trace = _judged_run(kernel[1, 32], values, out=np.zeros(1, np.int32), expected=[values.sum()])
    if trace.counters["barriers"]:
        raise AssertionError("it waits at a barrier of the block")
    return "the sum, without a race and without a barrier of the block"


def _judged_run(configured: Any, *inputs: Any, out: Any, expected: Any) -> Any:
    """Return a kernel's trace; AssertionError for errors of a check and for wrong results."""
    import numpy as np

    from gpusim.testing.assertions import assert_correct

    fresh = out.copy()
    try:
        assert_correct(configured, *inputs, fresh)
    except AssertionError as error:
        first = next(line for line in str(error).splitlines() if line.startswith("error"))
        raise AssertionError(f"gpusim check reports {first.partition('  [')[0]}") from None
    trace = _run(configured, *inputs, out)
    if not np.allclose(out, expected):
        raise AssertionError("the results are wrong")
    return trace


@_number(
    "instructions-saved",
    "warp instructions",
    "trace both with blocks of 256 on 512 elements and subtract their `instructions`",
)
def _instructions_saved() -> float:
    before, after = (_traced(name, 512, 256) for name in ("reduce5_fixed", "reduce6"))
    return float(before.counters["instructions"] - after.counters["instructions"])


@_number(
    "iterations-of-reduce7",
    "iterations",
    "an iteration of the whole grid reads two elements a thread",
)
def _iterations_of_reduce7() -> float:
    trace = _traced("reduce7", 2**16, 128, grid=16)
    loads = [one for one in trace.executions if one.space == "global" and one.warp == 0]
    first = min(one.pc for one in loads)
    return float(sum(one.pc == first for one in loads))


# -- the lessons -----------------------------------------------------------------------------


@_kernel("warp-maximum", "cuda.shfl_xor_sync at distances 16, 8, 4, 2 and 1, and max() each time")
def _warp_maximum(kernel: Any) -> str:
    """A kernel (values, out): every lane stores the maximum of the warp's 32 elements."""
    import numpy as np

    values = np.random.default_rng(1).integers(-1000, 1000, 32).astype(np.int32)
    expected = np.full(32, values.max())
    trace = _judged_run(kernel[1, 32], values, out=np.zeros(32, np.int32), expected=expected)
    counters = trace.counters
    if counters["shared_load_instructions"] or counters["global_load_instructions"] > 1:
        raise AssertionError("lanes exchange values through memory, not by shuffles")
    return "the maximum in all 32 lanes, from register to register"


@_number(
    "sectors-of-a-vector-load",
    "sectors",
    "32 lanes load 16 bytes each, neighbours beside each other",
)
def _sectors_of_a_vector_load() -> float:
    import numpy as np

    from gpusim.testing.exercise_kernels import vector_copy

    source = np.arange(128, dtype=np.float32)
    trace = _run(vector_copy[1, 32], source, np.zeros_like(source))
    return float(trace.counters["global_load_sectors"])


@_number(
    "barriers-of-a-scan",
    "barriers",
    "its steps are log2 of the block; count the barriers of one step in the source",
)
def _barriers_of_a_scan() -> float:
    return _barriers_of_a_warp(_traced("kogge_stone_scan_fixed", 256, 256))


@_kernel(
    "transposition",
    "a row of 33 elements in shared memory puts a column's elements into different banks",
)
def _transposition(kernel: Any) -> str:
    """A kernel (source, target) for blocks of 32 x 32, target = source.T of 64 x 64 floats."""
    import numpy as np

    source = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    configured, target = kernel[(2, 2), (32, 32)], np.zeros((64, 64), np.float32)
    trace = _judged_run(configured, source, out=target, expected=source.T)
    counters = trace.counters
    if counters["global_store_sectors"] > 4 * counters["global_store_requests"]:
        raise AssertionError("its stores are not coalesced")
    if counters["global_load_sectors"] > 4 * counters["global_load_requests"]:
        raise AssertionError("its loads are not coalesced")
    if counters["shared_load_bank_conflicts"] + counters["shared_store_bank_conflicts"]:
        raise AssertionError("its tile has bank conflicts")
    return "coalesced on both sides, without bank conflicts"


@_kernel(
    "histogram",
    "a block counts in shared memory with cuda.atomic.add, and adds its 32 bins to out at the end",
)
def _histogram(kernel: Any) -> str:
    """A kernel (values, out) for 4 blocks of 128: counts of 4,096 values from 0 to 31."""
    import numpy as np

    values = np.random.default_rng(2).integers(0, 32, 4096).astype(np.int32)
    expected = np.bincount(values, minlength=32)
    trace = _judged_run(kernel[4, 128], values, out=np.zeros(32, np.int32), expected=expected)
    lanes = sum(
        sum(one.on) for one in trace.executions if one.space == "global" and "LD" not in one.op
    )
    if lanes > 32:
        raise AssertionError(f"block 0 updates global memory {lanes:,} times; 32 bins need 32")
    return "the counts, with 32 updates of global memory a block"


@_number(
    "sectors-of-tiles",
    "sectors",
    "each of the 4 x 4 blocks loads 4 tiles of 16 x 16 floats from either matrix",
)
def _sectors_of_tiles() -> float:
    import numpy as np

    from gpusim.testing.exercise_kernels import product_16

    left = np.ones((64, 64), np.float32)
    configured = product_16[(4, 4), (16, 16)]
    trace = _run(configured, left, left.copy(), np.zeros_like(left), np.int32(64))
    return float(trace.counters["global_load_sectors"])
