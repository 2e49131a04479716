"""`gpusim.check`: run a kernel and check it by the order of its accesses."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from gpusim import machine
from gpusim.catalogue import Call
from gpusim.checking import elements, residency
from gpusim.checking.accessed_elements import Uninitialised
from gpusim.checking.barriers import SourceText
from gpusim.checking.checker import Checker
from gpusim.checking.consequences import joined
from gpusim.checking.faults import constant_indices, finding_of
from gpusim.checking.findings import Finding, Findings, place_of
from gpusim.checking.flags import takes_lock
from gpusim.checking.sink import Sink
from gpusim.codegen import generators
from gpusim.codegen.programs import NotLoweredError, prepare
from gpusim.errors import InputError
from gpusim.gpu.device import Device, load
from gpusim.isa.ops import Program
from gpusim.launch.configured import ConfiguredKernel
from gpusim.launch.events import BarrierArrived, BarrierOpened, Observer, Step, hooks
from gpusim.launch.grid import ComputeCapability, Launch, whole_number
from gpusim.launch.languages import CUDA_CPP, TRITON
from gpusim.launch.prepared import Prepared, named_in_interrupts
from gpusim.machine.compiled.checked_steps import Listener
from gpusim.machine.compiled.detection import Examined
from gpusim.machine.compiled.examination import Limits, examined, written_down
from gpusim.machine.compiled.instance import OthersJoinError
from gpusim.machine.storage import allocate, with_copies
from gpusim.machine.turns import Turns
from gpusim.program.array_bounds import with_array_bounds
from gpusim.program.polling import refills
from gpusim.typing import Array

# Unoptimised code keeps all accesses of the source: optimisation may merge racing ones.
LEVEL = "O0"


def check(
    configured: ConfiguredKernel,
    *args: Any,
    device: str | Path | Device = "h200",
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
    uninitialised: Collection[str] = (),
    progress: machine.Progress | None = None,
    lenient: bool = False,
    order: int | None = None,
    blocks: Sequence[int] | None = None,
    code: str | None = None,
) -> Findings:
    """Run `kernel[grid, block]` with `args` and return its findings; arrays hold results.

    `device` is the GPU: its compute capability decides about the lanes of a warp, its size about
    blocks that wait for each other. `step_limit` is the most instructions that a block may run.
    Arrays named in `uninitialised`, by their parameters, start without values: reading an element
    before it is written is a finding. `progress` is called with the number of finished blocks. With
    `lenient`, a lock or a flag acquires without a fence after it. With `order`, warps and blocks
    run in random order, with this seed. `blocks` are the only ones to run, by number. `code` is the
    generator of a Python kernel, "lowering", "nvcc" or "auto"; by default the environment's
    GPUSIM_CODE, else the lowering without optimisation.

    Faults that stop `gpusim.trace` (an index outside its array, a barrier not reached by all
    threads) are findings, and the run continues. Raises GpusimError for a launch, argument or
    kernel that cannot run.
    """
    gpu = load(device)
    prepared = to_check(configured, args, gpu.cc, code)
    return check_prepared(
        prepared,
        gpu,
        step_limit=step_limit,
        uninitialised=dict.fromkeys(uninitialised),
        progress=progress,
        lenient=lenient,
        order=order,
        blocks=blocks,
    )


def to_check(
    configured: ConfiguredKernel, args: Sequence[Any], cc: ComputeCapability, code: str | None
) -> Prepared:
    """Return a launch as a check runs it: a Python kernel's without optimisation, if not nvcc's."""
    chosen = generators.chosen(code, default=generators.LOWERING)
    if chosen != generators.LOWERING:
        prepared = prepare(configured, args, cc, code=chosen)
        if not prepared.fallback and prepared.program.compiler:
            return prepared
    try:
        return prepare(configured, args, cc, LEVEL, asks=True, code=generators.LOWERING)
    except NotLoweredError:
        if code is not None:
            raise
        return prepare(configured, args, cc, code=generators.AUTO)


def check_call(
    call: Call,
    *,
    device: str | Path | Device = "h200",
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
    progress: machine.Progress | None = None,
    lenient: bool = False,
    order: int | None = None,
    blocks: Sequence[int] | None = None,
    code: str | None = None,
) -> Findings:
    """Check a launch of the catalogue, also for elements missing or repeated in its sums.

    The sums of a racing kernel are not examined.
    """
    gpu = load(device)
    prepared = to_check(call.configured, call.arguments, gpu.cc, code)
    found = check_prepared(
        prepared,
        gpu,
        step_limit=step_limit,
        progress=progress,
        lenient=lenient,
        order=order,
        blocks=blocks,
    )
    if found.errors or blocks is not None:
        return found
    every = (*found, *elements.findings(call.setup))
    return replace(found, found=tuple(sorted(every, key=place_of)))


@named_in_interrupts
def check_prepared(
    prepared: Prepared,
    device: Device,
    *,
    step_limit: int = machine.DEFAULT_STEP_LIMIT,
    progress: machine.Progress | None = None,
    uninitialised: Uninitialised | None = None,
    observers: Sequence[Observer] = (),
    lenient: bool = False,
    order: int | None = None,
    blocks: Sequence[int] | None = None,
) -> Findings:
    """Run a prepared program, of any origin, and return its findings.

    Arrays in `uninitialised` start without values, where theirs do not say otherwise. `lenient`
    acquires need no fence. Unless barriers alone order all accesses, a program with locks runs a
    second time, the last warps and blocks first: a lock orders critical sections as the run took
    them. One with a ring buffer runs with the first and with the last first. `order` is the seed of
    random turns, `blocks` the only ones to run.
    """
    step_limit = whole_number(step_limit, "the step limit", least=1)
    launch, blocks = prepared.launch, _existing(blocks, prepared.launch)
    program = with_array_bounds(prepared.program, launch.dynamic_shared_bytes)
    if blocks is None:
        machine.rehearse(prepared, step_limit)
    prepared = replace(prepared, program=program, rehearsal=None)
    allocations = allocate(prepared.arguments, places=prepared.places)
    _require_arrays(uninitialised or (), allocations)
    waits = blocks is None and residency.may_be_stuck(prepared, device)
    before = residency.copied(prepared) if waits else None
    other_orders, source = Sink(), source_of(prepared)

    def new() -> Checker:
        known = prepared.cc, allocations, uninitialised
        return Checker(Sink(), *known, lenient=lenient, source=source)

    checker = new()
    is_alone = not observers and before is None and blocks is None
    may_be_clean = is_alone and order is None and not refills(program)
    if not may_be_clean or not _is_clean(prepared, checker, step_limit):
        if blocks is None:
            other_orders = _in_other_orders(prepared, new, step_limit, uninitialised)
        heard = partial(_heard, observers, progress)
        how = _How(step_limit, partial(_turns, order), heard, blocks)
        checker = _stepped(prepared, new, how)
    checker.tell_sums()
    checker.tell_overflows()
    if blocks is not None:
        checker.coverage.blocks = blocks[0], blocks[-1], launch.blocks
    sink = checker.sink
    sink.add_new(other_orders)
    for finding in constant_indices(program, checker.coverage.lines_not_run):
        sink.add(finding)
    if before is not None and not sink.has("no-progress"):
        stuck = residency.finding(prepared, device, before, checker.steps)
        if stuck is not None:
            sink.add(stuck)
    return _findings_of(prepared, checker, order)


def _turns(order: int | None) -> Turns | None:
    return None if order is None else Turns(order)


def _heard(observers: Sequence[Observer], progress: machine.Progress | None) -> Sequence[Observer]:
    """Return observers beside the checker, and one that counts blocks that have ended."""
    return (*observers, *([] if progress is None else [machine.Finished(progress)]))


def _findings_of(prepared: Prepared, checker: Checker, order: int | None) -> Findings:
    """Return the findings of a checker, in order, without those that follow from others."""
    found = [one for one in checker.sink.sorted() if not _is_tritons_own(one, prepared)]
    failed = {line for one in found if one.rule == "fault" for line in one.lines}
    # After an assertion that fails code has no end: it would have been left by a GPU.
    found = [one for one in found if one.rule != "no-progress" or not failed.issuperset(one.lines)]
    checker.coverage.lines_not_run -= {line for one in found for line in one.lines}
    program = prepared.program
    return Findings(
        kernel=prepared.kernel,
        source_file=prepared.source_file,
        grid=prepared.launch.grid,
        block=prepared.launch.block,
        compute_capability=str(prepared.cc),
        generator=program.generator,
        lowering=program.lowering,
        compiler=program.compiler,
        lenient=checker.lenient,
        order=order,
        coverage=checker.coverage,
        found=tuple(replace(one, language=prepared.language) for one in joined(found, program)),
    )


_TRITONS_SHARED_MEMORY = "global_smem"
# All lanes that hold an element of a tensor store it there, some of them at once. Their values
# differ in the last bits where the last product of a reduction was fused with its first sum.
_TRITONS_OWN = ("same-value", "one-instruction")


def _is_tritons_own(one: Finding, prepared: Prepared) -> bool:
    """Return whether a finding is on shared memory that Triton lays out, as for a reduction."""
    is_triton = prepared.language == TRITON and one.rule in _TRITONS_OWN
    return is_triton and one.array == _TRITONS_SHARED_MEMORY


def source_of(prepared: Prepared) -> SourceText:
    """Return a kernel's source, with the text of its file where it does not bring its own."""
    own = prepared.source_text if prepared.language == CUDA_CPP else ""
    return own or "".join(linecache.getlines(prepared.source_file)), prepared.language


def _is_clean(prepared: Prepared, checker: Checker, step_limit: int) -> bool:
    """Return whether compiled code has checked a launch and no finding is possible."""
    checker.begin(prepared.program, prepared.launch)
    compiled = checker.compiled
    asked = compiled.detection()
    if asked is None:
        return False
    found = examined(prepared, *asked, _limits(prepared, step_limit, None), compiled.added)
    if found is not None:
        compiled.take(found)
    return found is not None


def _limits(prepared: Prepared, step_limit: int, blocks: Sequence[int] | None) -> Limits:
    chosen = machine.in_clusters(prepared.launch, blocks)
    chunk = machine.chunk_blocks(prepared.program, prepared.launch)
    return Limits(step_limit, chunk, machine.quantum(step_limit), prepared.source_file, chosen)


class _How(NamedTuple):
    """How a launch is run by steps: the order of warps, observers beside the checker, blocks.

    Without `keeps_results` arrays stay as they were.
    """

    step_limit: int
    turns: Callable[[], Turns | None]
    observers: Callable[[], Sequence[Observer]] = tuple
    blocks: Sequence[int] | None = None
    keeps_results: bool = True
    all_at_once: bool = False


class _Together(Observer):
    """Passes the steps of compiled code to a checker and to others, which began before."""

    def __init__(self, checker: Checker, others: Sequence[Observer]) -> None:
        self._checker, self._all = checker, (checker, *others)

    def step(self, step: Step) -> None:
        """Handle a step."""
        for one in self._all:
            one.step(step)

    def barrier_opened(self, opened: BarrierOpened) -> None:
        """Handle an opened barrier."""
        self._checker.barrier_opened(opened)

    def barrier_arrived(self, arrived: BarrierArrived) -> None:
        """Handle threads that arrive at a barrier without waiting."""
        self._checker.barrier_arrived(arrived)

    def batch_end(self, blocks: Array) -> None:
        """Handle the end of blocks."""
        for one in self._all:
            one.batch_end(blocks)


def _stepped(prepared: Prepared, new: Callable[[], Checker], how: _How) -> Checker:
    """Return a checker with the steps of a launch, in compiled code or else in NumPy."""
    checker = _by_steps(prepared, new, how)
    if checker is None:
        checker = new()
        _run(prepared, checker, how.observers(), how.step_limit, how.turns(), how.blocks)
    return checker


def _by_steps(prepared: Prepared, new: Callable[[], Checker], how: _How) -> Checker | None:
    """Return a checker with the steps of a launch in compiled code.

    None if compiled code cannot write them down. Values of registers are followed if that is
    needed, and all blocks run at a time where some wait for others.
    """
    follows = False
    while True:
        checker = new()
        try:
            if _is_written_down(prepared, checker, how, follows=follows):
                return checker
        except OthersJoinError:
            how = how._replace(all_at_once=True)
            continue
        if follows or not checker.compiled.needs_values:
            return None
        follows = True


def _is_written_down(prepared: Prepared, checker: Checker, how: _How, *, follows: bool) -> bool:
    """Return whether compiled code has written the steps of a launch down for the checker."""
    others = how.observers()
    for one in (checker, *others):
        one.begin(prepared.program, prepared.launch)
    compiled, sink = checker.compiled, checker.sink
    asked = compiled.asked_steps(follows=follows, by_others=bool(hooks(others, "step")))
    if asked is None:
        return False

    def takes(found: Examined) -> bool:
        checker.steps = found.steps
        return compiled.take_steps(found)

    listener = Listener(
        _Together(checker, others),
        lambda fault: sink.add(finding_of(fault)),
        dict(asked.steps),
        asked.swaps,
        how.turns(),
        how.keeps_results,
    )
    limits = _limits(prepared, how.step_limit, how.blocks)
    if how.all_at_once:
        limits = limits._replace(chunk=len(limits.blocks))
    return written_down(prepared, asked, limits, compiled.added, listener, takes)


def _in_other_orders(
    prepared: Prepared,
    new: Callable[[], Checker],
    step_limit: int,
    uninitialised: Uninitialised | None,
) -> Sink:
    """Return the findings of a launch in further orders of warps and blocks."""
    found = Sink()
    for turns in _other_orders(prepared.program):
        again = _by_steps(prepared, new, _How(step_limit, turns, keeps_results=False))
        if again is not None:
            found.merge(again.sink)
        else:
            lenient = new().lenient
            _run_again(prepared, found, turns(), step_limit, uninitialised, lenient=lenient)
    return found


def _other_orders(program: Program) -> list[Callable[[], Turns]]:
    """Return orders of warps and blocks that may show further races."""
    if refills(program):
        return [Turns, lambda: Turns(ascending=True)]
    return [Turns] if any(map(takes_lock, program.instructions)) else []


def _run_again(
    prepared: Prepared,
    sink: Sink,
    turns: Turns,
    step_limit: int,
    uninitialised: Uninitialised | None,
    *,
    lenient: bool,
) -> None:
    """Gather the findings of a launch in another order, on copies of its arrays."""
    arguments, copies = with_copies(prepared.arguments, prepared.arguments.keys())
    again = replace(prepared, arguments=arguments, copies=copies, swapped=(), printed=[])
    allocations = allocate(again.arguments, copies, again.places)
    known = prepared.cc, allocations, uninitialised
    checker = Checker(sink, *known, lenient=lenient, source=source_of(prepared))
    _run(again, checker, (), step_limit, turns)


def _run(
    prepared: Prepared,
    checker: Checker,
    observers: Sequence[Observer],
    step_limit: int,
    turns: Turns | None,
    blocks: Sequence[int] | None = None,
) -> None:
    """Run a launch, or some of its blocks, step by step for a checker; faults are findings."""
    machine.run(
        prepared,
        observers=(checker, *observers),
        step_limit=step_limit,
        on_fault=lambda fault: checker.sink.add(finding_of(fault)),
        blocks=blocks,
        schedule=machine.Schedule(turns=turns),
    )


def _existing(blocks: Sequence[int] | None, launch: Launch) -> Sequence[int] | None:
    """Return numbers of blocks in order; InputError where the grid has not all of them."""
    if blocks is None:
        return None
    found = sorted({whole_number(block, "blocks") for block in blocks})
    if not found or found[0] < 0 or found[-1] >= launch.blocks:
        raise InputError(f"blocks are numbers from 0 to {launch.blocks - 1}, one at least")
    return found


def _require_arrays(names: Collection[str], arrays: Collection[str]) -> None:
    """Raise InputError for a name that is none of some arrays."""
    for name in names:
        if name not in arrays:
            given = ", ".join(arrays) or "none"
            raise InputError(
                f"uninitialised: {name!r} is not an array of the kernel; its arrays are {given}"
            )
