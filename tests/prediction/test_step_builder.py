"""Steps of streams: iterations that are copied, and numbers of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from gpusim import cuda
from gpusim.catalogue import Request
from gpusim.codegen.programs import prepare
from gpusim.gpu.device import load
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.prepared import Prepared
from gpusim.prediction.arithmetic.ticks import TICKS
from gpusim.prediction.clock import additions, program_steps, step_builder
from gpusim.prediction.clock.additions import CODE_BYTES, Added, Content, Reached, Seen
from gpusim.prediction.clock.builder import Builder, Told
from gpusim.prediction.clock.issue import issues
from gpusim.prediction.clock.step_builder import Fetching
from gpusim.prediction.clock.step_table import Draft
from gpusim.prediction.clock.steps import Action, Step
from gpusim.prediction.clock.warp_steps import WarpSteps
from gpusim.prediction.streams import WarpStream, classify
from gpusim.prediction.streams.instruction_table import COLUMNS
from gpusim.prediction.sweeps.jobs import catalogue_job

pytestmark = pytest.mark.usefixtures("both_evaluators")

FIELDS = [one.name for one in fields(Step)]
DRAFTED = [one.name for one in fields(Draft) if one.name != "needs"]


class Counted(Seen):
    """Counts the instructions that are gone through, and not copied."""

    issued = 0

    def build(self, begun: Reached, content: Content) -> Added:
        self.issued += len(content.codes) // CODE_BYTES
        return super().build(begun, content)


def told(work: WarpSteps) -> list[Any]:
    """Return all that a warp's steps say."""
    steps = [[getattr(step, name) for name in FIELDS] for step in work.steps]
    return [steps, work.tags, list(work.charges.items()), work.loops, work.instructions]


@pytest.mark.parametrize(
    ("request_", "gpu"),
    [
        (Request("reduce7", 2**20, block=64, grid=8), "h200"),
        (Request("kernel1", 2**20, block=128, grid=8), "k40m"),
        (Request("kernel4", 2**20, block=64, grid=8), "rtx2060"),
    ],
    ids=["reduce7", "kernel1", "kernel4"],
)
def test_iterations_that_are_copied_are_as_if_built_one_by_one(
    request_: Request, gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step, field by field, whatever loop it is in; most are copied, from other warps too."""
    whole, length = step_builder.steps_of_warps, 0
    counted: dict[int, Counted] = {}

    def both(warps: Sequence[Fetching], known: Seen) -> list[WarpSteps]:
        nonlocal length
        mine = counted.setdefault(id(known), Counted(known._program))
        made = whole(warps, mine)
        for warp, work in zip(warps, made, strict=True):
            length += len(warp.stream)
            assert_gone_through(warp, mine, work)
        return made

    monkeypatch.setattr(program_steps, "steps_of_warps", both)
    program_steps.program_steps.cache_clear()
    catalogue_job(request_).on(gpu)
    assert 0 < sum(one.issued for one in counted.values()) < 0.7 * length


def assert_gone_through(warp: Fetching, known: Seen, work: WarpSteps) -> None:
    """One builder that goes through the whole stream makes the same steps."""
    stream, program, builder = warp.stream, known._program, Builder()
    for place, pc in enumerate(stream.pc.tolist()):
        if place in warp.code:
            builder.fetch(pc, warp.code[place])
        builder.late = warp.constants.get(place, 0)
        told = Told(pc, place, bool(stream.is_taken[place]), bool(stream.is_on[place]))
        builder.issue(told, program[pc], is_last=place == len(stream) - 1)
    builder.finish(int(stream.pc[-1]))
    assert list(work.charges.items()) == list(builder.charges.items())
    assert work.tags == builder.tags + 1
    assert work.instructions == sum(draft.issued for draft in builder.made)
    for step, draft in zip(work.steps, builder.made, strict=True):
        assert [getattr(step, name) for name in DRAFTED] == [getattr(draft, n) for n in DRAFTED]
        there = (builder.tags,) if step.mark >= 0 else ()
        assert step.needs == (draft.needs or there)


def test_an_iteration_that_another_warp_has_run_is_not_gone_through_again() -> None:
    """The second warp issues nothing.

    The first iteration leaves the first warp in the state that it finds it in. Those that are noted
    are copied as well, and equal sections outside the loop.
    """
    gpu = load("h200")
    request = Request("reduce7", 2**24, block=64, grid=8)
    prepared = catalogue_job(request).launches[0].prepared(gpu.cc)
    stream = classify(prepared).classes[0].stream.warps[0].written_out(lambda *_: 32)
    (loop,) = stream.simulated_loops
    outside = len(stream) - loop.simulated * loop.length
    rows = issues(prepared.program, gpu)
    known = Counted(rows)
    works = [step_builder.steps_of(stream, rows, {}, {}, known)]
    assert loop.length < known.issued <= outside + loop.length
    built = known.issued
    works.append(step_builder.steps_of(stream, rows, {}, {}, known))
    assert known.issued == built
    assert [marked.is_marked for marked in works[1].loops] == [True]
    assert told(works[0]) == told(works[1])


@cuda.jit
def halved(x, out):  # type: ignore[no-untyped-def]
    value = x[cuda.threadIdx.x]
    while value > 1:
        value = value // 2 + x[cuda.threadIdx.x + 32]
    out[cuda.threadIdx.x] = value


def halving() -> tuple[Prepared, WarpStream]:
    """Return a launch of a warp that halves numbers until they are zero, and its stream."""
    ints = np.repeat(np.array([2**24, 0], np.int32), 32)
    cc = ComputeCapability(9, 0)
    prepared = prepare(halved[1, 32], (ints, ints.copy()), cc, code="lowering")
    (only,) = classify(prepared).classes
    (stream,) = only.stream.warps
    return prepared, stream


def test_a_loop_that_was_recorded_whole_is_copied_from_its_first_iterations() -> None:
    """Elements decide when it ends: of 24 iterations the first two and the last are gone through.

    A second time none is. The steps are as if all had been gone through.
    """
    prepared, stream = halving()
    assert not stream.loops
    rows = issues(prepared.program, load("h200"))
    known = Counted(rows, most_at_once=len(stream))
    works, built = [], []
    for _ in range(2):
        works.append(step_builder.steps_of(stream, rows, {}, {}, known))
        built.append(known.issued)
    body = int(np.bincount(stream.pc).argmax())
    length = int(np.diff(np.flatnonzero(stream.pc == body))[-1])
    assert built == [len(stream) - 21 * length] * 2
    assert told(works[0]) == told(works[1])
    assert_gone_through(Fetching(stream), known, works[0])


def test_of_pieces_that_differ_in_an_instruction_the_common_parts_are_gone_through_once() -> None:
    """A load without a lane changes what follows until it would be waited for, and no more."""
    prepared, stream = halving()
    rows = issues(prepared.program, load("h200"))
    loads = [at for at, pc in enumerate(stream.pc) if rows[pc].action is Action.GLOBAL_LOAD]
    is_on = stream.is_on.copy()
    is_on[loads[len(loads) // 2]] = False
    columns = {name: stream.taken(name) for name in COLUMNS} | {"is_on": is_on}
    other, known = replace(WarpStream.of(**columns), loops=stream.loops), Counted(rows)
    built = []
    for one in (stream, other):  # each as one piece
        known.added(known.first, Content(step_builder._codes(one), (), 0, is_last=True))
        built.append(known.issued)
    assert 0 < built[1] - built[0] <= 2 * additions.MOST_AT_ONCE
    assert_gone_through(Fetching(other), known, step_builder.steps_of(other, rows, seen=known))


@cuda.jit
def two_loads_after_each_other(x, out):  # type: ignore[no-untyped-def]
    first = x[cuda.threadIdx.x]
    out[first] = x[first]


def test_a_number_of_a_result_is_given_again_once_it_has_been_waited_for() -> None:
    """The second load's address is the first one's result: that is there when it is issued."""
    cc, ints = ComputeCapability(9, 0), np.arange(32, dtype=np.int32)
    prepared = prepare(two_loads_after_each_other[1, 32], (ints, ints.copy()), cc, code="lowering")
    (only,) = classify(prepared).classes
    work = step_builder.steps_of(only.stream.warps[0], issues(prepared.program, load("h200")))
    loads = [step.tag for step in work.steps if step.action.name == "GLOBAL_LOAD"]
    assert len(loads) == 2
    assert loads[0] == loads[1]


@cuda.jit
def met(x, out):  # type: ignore[no-untyped-def]
    shared = cuda.shared.array(32, np.int32)
    shared[cuda.threadIdx.x] = x[cuda.threadIdx.x]
    cuda.syncthreads()
    out[cuda.threadIdx.x] = shared[31 - cuda.threadIdx.x]


def test_a_barriers_stall_count_is_part_of_the_wait_behind_it() -> None:
    """It is charged with a cycle, which it is issued in, and not with the six until the next."""
    cc, ints = ComputeCapability(9, 0), np.arange(32, dtype=np.int32)
    prepared = prepare(met[1, 32], (ints, ints.copy()), cc, code="lowering")
    (only,) = classify(prepared).classes
    made = tuple(
        replace(one, stall_cycles=6) if one.op == "BAR" else one
        for one in prepared.program.instructions
    )
    counted = replace(prepared.program, instructions=made)
    work = step_builder.steps_of(only.stream.warps[0], issues(counted, load("h200")))
    (barrier,) = (pc for pc, one in enumerate(made) if one.op == "BAR")
    assert work.charges[barrier] == TICKS
    assert sum(work.charges.values()) == work.slots.sum() + work.waits.sum()


@cuda.jit
def quarters(values):
    i = cuda.grid(1)
    one = np.float32(1)
    for quarter in range(4):
        cuda.store_vector(values, 8 * i + 2 * quarter, (one, one))


def test_of_a_store_right_behind_another_to_its_sectors_a_part_leaves_with_that() -> None:
    """32 sectors of 8 lines: two fifths less of the second, all of the third again."""
    values = np.zeros(8 * 32, np.float32)
    prepared = prepare(quarters[1, 32], (values,), ComputeCapability(9, 0), "O3", code="lowering")
    (only,) = classify(prepared).classes
    work = step_builder.steps_of(only.stream.warps[0], issues(prepared.program, load("h200")))
    asked = [
        (step.access.cost, step.access.lines)
        for step in work.steps
        if step.action is Action.GLOBAL_STORE
    ]
    assert asked == [(32, 8), (19, 5), (32, 8), (19, 5)]


@cuda.jit
def four_words(out, at):
    row = cuda.local.array(8, np.int32)
    row[at] = at
    row[at + 1] = at
    row[at + 2] = at
    row[at + 3] = at
    out[cuda.grid(1)] = row[out[0]]


def test_stores_to_local_memory_in_a_row_are_to_sectors_of_their_own() -> None:
    """Each is a line of four sectors: none leaves with the one before it."""
    arguments = np.zeros(32, np.int32), np.int32(1)
    prepared = prepare(four_words[1, 32], arguments, ComputeCapability(9, 0), code="lowering")
    (only,) = classify(prepared).classes
    work = step_builder.steps_of(only.stream.warps[0], issues(prepared.program, load("h200")))
    asked = [
        (step.access.cost, step.access.lines, step.access.is_whole)
        for step in work.steps
        if step.action is Action.GLOBAL_STORE
    ]
    assert asked == 5 * [(4, 1, True)]
