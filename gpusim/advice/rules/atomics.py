"""Atomics that meet at one address."""

from __future__ import annotations

from collections.abc import Iterable

from gpusim.advice.evidence import Evidence
from gpusim.advice.records import Advice
from gpusim.advice.registry import rule

LEAST_REPLAYS = 1.0  # of an atomic instruction, on the mean
BINDING = 0.3  # of the time that the bound of atomics has to be
SYMPTOMS = frozenset({"long-scoreboard", "short-scoreboard", "lg-throttle", "mio-throttle"})


@rule("atomics", removal="atomics")
def atomics(evidence: Evidence) -> Iterable[Advice]:
    """Atomics of a warp, or of many blocks, that name one address; not arrivals at mbarriers."""
    memories = [(row.line, row.memory) for row in evidence.instructions if row.memory is not None]
    arrivals = {line for line, memory in memories if memory.is_barrier_word}
    for line in evidence.lines:
        for space in ("global",) if line in arrivals else ("global", "shared"):
            issued = evidence.count(line, f"{space}_atomics")
            replays = evidence.count(line, f"{space}_atomic_replays")
            if not issued:
                continue
            tries = space == "shared" and _tries_again(evidence, line)
            meets = replays >= LEAST_REPLAYS * issued or tries
            binds = space == "global" and _binds(evidence)
            if not meets and not binds:
                continue
            counted = (f"{space}_atomic_replays", *[f"{space}_atomics"] * tries)
            cost = max(1.0, evidence.of_a_block(line, *counted))
            cost = max(cost, evidence.cycles if binds else 0.0)
            if not evidence.is_worth_saying(cost):
                continue
            each = replays / issued
            what = (
                f"lanes of a warp update one address, {each:.1f} replays each"
                if meets
                else "blocks of the whole grid update one address"
            )
            number = f"{issued:,}" if evidence.is_whole else "its"
            yield Advice(
                "atomics",
                line,
                f"line {line}: in {number} atomics of {space} memory {what}. Fix: atomics on more "
                "addresses, or a reduction in the warp first.",
                cost,
                explains=SYMPTOMS | {"divergence"} if tries else SYMPTOMS,
                lines=frozenset({line}),
                cause=f"{space}, lanes of a warp: {meets}",
            )


def _tries_again(evidence: Evidence, line: int) -> bool:
    """Return whether lanes retry a failed compare-and-swap while others are done."""
    return any(decision.diverges for decision in evidence.decisions.get(line, ()))


def _binds(evidence: Evidence) -> bool:
    """Return whether atomics that meet limit the launch."""
    made = evidence.prediction
    if made is None:
        return False
    bounds = {bound.name: bound.time_us for bound in made.bounds}
    return bounds.get("atomics", 0.0) >= BINDING * made.time_us
