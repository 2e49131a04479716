"""Global memory: scattered sectors, loads of neighbouring words, repeated accesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from gpusim.advice.evidence import SECTOR_CYCLES, Evidence, Numbered, when
from gpusim.advice.records import Advice
from gpusim.advice.registry import rule
from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.tracing import lanes
from gpusim.tracing.execution import Execution

SECTORS_ABOVE_LEAST = 1.5
SYMPTOMS = frozenset({"long-scoreboard", "lg-throttle", "latency"})
VECTOR_BYTES = 16  # of the widest load of a lane: CUDA's programming guide, 5.3.2
OFTEN = 4  # executions by a warp, at least, for a finding


def _least_sectors(execution: Execution) -> int:
    addresses = execution.addresses or ()
    touched = {addresses[lane] for lane in lanes.on_lanes(execution)}
    return -(-len(touched) * execution.width_bytes // SECTOR_BYTES)


def _accesses(numbered: Iterable[Numbered]) -> list[Numbered]:
    return [p for p in numbered if p.execution.space == "global" and p.execution.sectors]


@rule("uncoalesced", removal="uncoalesced")
def uncoalesced(evidence: Evidence) -> Iterable[Advice]:
    """Global accesses that fetch more sectors than their bytes need."""
    for line, numbered in evidence.by_line.items():
        accesses = _accesses(numbered)
        sectors = sum(p.times * p.execution.sectors for p in accesses)
        least = sum(p.times * _least_sectors(p.execution) for p in accesses)
        cost = (sectors - least) * SECTOR_CYCLES
        if not accesses or sectors < SECTORS_ABOVE_LEAST * least:
            continue
        if not evidence.is_worth_saying(cost) or _neighbours(accesses):
            continue
        worst = max(accesses, key=lambda p: p.execution.sectors - _least_sectors(p.execution))
        execution = worst.execution
        on, step = lanes.on_lanes(execution), lanes.stride(execution)
        how = f"stride {abs(step)}" if step is not None else "scattered addresses"
        name = f" of {execution.array}" if execution.array else ""
        spread = "spreads" if step is not None else "spread"
        few = _least_sectors(execution)
        kind, alike = _of_its_kind(worst, accesses)
        used = sum(p.times * _least_sectors(p.execution) for p in alike) / sum(
            p.times * p.execution.sectors for p in alike
        )
        message = (
            f"line {line}: {how} {spread} {len(on)} lanes{name} over {execution.sectors} sectors "
            f"instead of {few}{when(worst, accesses)}; {100 * used:.0f} % of the bytes of "
            f"{kind} sectors are used"
        )
        yield Advice(
            "uncoalesced",
            line,
            message + ".",
            cost,
            explains=SYMPTOMS,
            cause=f"{how}, {len(on)} lanes, {execution.sectors} sectors, {kind}",
        )


def _of_its_kind(one: Numbered, accesses: Sequence[Numbered]) -> tuple[str, list[Numbered]]:
    """Return "loaded", "stored" or "updated", and the accesses that do the same."""
    kinds = {"LD": "loaded", "ST": "stored"}

    def kind(p: Numbered) -> str:
        return kinds.get(p.execution.op[:2], "updated")

    return kind(one), [p for p in accesses if kind(p) == kind(one)]


def _neighbours(accesses: Sequence[Numbered]) -> list[Execution]:
    """Return loads of a warp, one after the other, that one vector load would do; or none."""
    by_place: dict[tuple[int, int, str], list[Execution]] = {}
    for p in accesses:
        e = p.execution
        if e.op.startswith("LD") and e.array is not None and 0 < e.width_bytes < VECTOR_BYTES:
            by_place.setdefault((e.warp, e.occurrence, e.array), []).append(e)
    for loads in by_place.values():
        first: dict[int, Execution] = {}
        for load in loads:
            steps = lanes.stride(load)
            size = load.element_bytes * abs(steps or 0)
            if load.width_bytes < size <= VECTOR_BYTES:
                first.setdefault((load.addresses or (0,))[0], load)
        starts = sorted(first)
        if len(starts) > 1 and all(
            after - before == first[before].width_bytes for before, after in pairwise(starts)
        ):
            return [first[start] for start in starts]
    return []


@rule("narrow-loads", removal="narrow-loads")
def narrow_loads(evidence: Evidence) -> Iterable[Advice]:
    """Neighbouring words that a thread loads one by one, where a vector load would do."""
    for line, numbered in evidence.by_line.items():
        accesses = _accesses(numbered)
        found = _neighbours(accesses)
        if not found:
            continue
        width = sum(load.width_bytes for load in found)
        cost = sum(p.times * p.execution.sectors for p in accesses) * (1 - 1 / len(found)) / 4
        if not evidence.is_worth_saying(cost):
            continue
        saved = sum(p.times for p in accesses) * (1 - 1 / len(found))
        yield Advice(
            "narrow-loads",
            line,
            f"line {line}: a thread loads {len(found)} neighbouring words of {found[0].array} one "
            f"by one; a vector load of {width} bytes would do.",
            saved,
            explains=SYMPTOMS,
            cause=f"{len(found)} words, {width} bytes",
        )


@rule("repeated-accesses", removal="repeated-accesses")
def repeated_accesses(evidence: Evidence) -> Iterable[Advice]:
    """Words of global memory that a block loads, or a thread stores, again and again."""
    for line, numbered in evidence.by_line.items():
        accesses = _accesses(numbered)
        told: list[Advice] = []
        for kind, verb in (("LD", "loads"), ("ST", "stores to")):
            mine = [p for p in accesses if p.execution.op.startswith(kind) and p.execution.array]
            for array in sorted({p.execution.array or "" for p in mine}):
                found = _repeated([p for p in mine if p.execution.array == array], kind == "ST")
                if found is None or not evidence.is_worth_saying(found[0]):
                    continue
                cost, asked, distinct, cure = found
                what, saved = (
                    (f"{asked:,} bytes of {array}, {distinct:,} of them different", "the others")
                    if evidence.is_whole_block
                    else (
                        f"each byte of {array} {asked / distinct:.3g} times in the iterations "
                        "that were traced",
                        "all but the first",
                    )
                )
                told.append(
                    Advice(
                        "repeated-accesses",
                        line,
                        f"line {line}: a block {verb} {what}; {cure} would save {saved}.",
                        cost,
                        explains=SYMPTOMS,
                        cause=f"{verb} {array}, {cure}",
                    )
                )
        yield from sorted(told, key=lambda advice: -advice.cost)[:1]


def _repeated(accesses: Sequence[Numbered], stores: bool) -> tuple[float, int, int, str] | None:
    """Return cost, bytes, different bytes, and the cure of repeated accesses; None for none."""
    executions = [p.execution for p in accesses]
    by_warp = Counter(e.warp for e in executions)
    if max(by_warp.values(), default=0) < OFTEN:
        return None
    asked = 0
    sectors = sum(p.times * p.execution.sectors for p in accesses)
    different: set[int] = set()
    of_thread: Counter[tuple[int, int, int]] = Counter()
    for e in executions:
        places = {lane: (e.addresses or ())[lane] for lane in lanes.on_lanes(e)}
        asked += len(set(places.values())) * e.width_bytes
        different.update(places.values())
        of_thread.update((e.warp, lane, place) for lane, place in places.items())
    width = executions[0].width_bytes
    distinct = len(different) * width
    by_one = sum(of_thread.values()) / len(of_thread)
    if asked < 2 * distinct or (stores and by_one < OFTEN):
        return None
    if by_one < OFTEN and all(lanes.stride(e) == 0 for e in executions):
        return None  # a word for all lanes: each warp needs it once
    cost = sectors * (1 - distinct / asked) / 4  # out of the L1: wavefronts of 128 bytes
    cure = "a register" if by_one >= OFTEN else "shared memory"
    return cost, asked, distinct, cure
