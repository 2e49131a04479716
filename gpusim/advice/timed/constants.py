"""Constants at differing addresses among the lanes of a warp."""

from __future__ import annotations

from collections.abc import Iterable

from gpusim.advice.evidence import Evidence
from gpusim.advice.records import Advice
from gpusim.advice.registry import rule
from gpusim.isa.ops import OPS

LEAST_LOOKUPS = 2.0  # different constants of a warp's load, on the mean


@rule("constants", removal="constants")
def constants(evidence: Evidence) -> Iterable[Advice]:
    """Loads of constants at addresses that differ among the lanes of a warp."""
    made = evidence.prediction
    if made is None:
        return
    asked: dict[int, float] = {}
    runs: dict[int, float] = {}
    rows = evidence.instructions
    loads = {pc for pc, row in enumerate(rows) if OPS[row.op].action == "constant"}
    for one in made.classes.classes[:1]:
        for warp in one.stream.warps:
            for pc, cost, times in zip(
                warp.pc.tolist(), warp.cost.tolist(), warp.times.tolist(), strict=True
            ):
                if pc in loads:
                    line = rows[pc].line
                    asked[line] = asked.get(line, 0.0) + cost * times
                    runs[line] = runs.get(line, 0.0) + times
    for line, count in sorted(asked.items()):
        each = count / runs[line]
        if each < LEAST_LOOKUPS or not evidence.is_worth_saying(count):
            continue
        yield Advice(
            "constants",
            line,
            f"line {line}: the lanes of a warp read {each:.0f} different constants, one after the "
            "other; shared memory serves 32 words at once.",
            count,
            explains=frozenset({"short-scoreboard", "mio-throttle"}),
            cause=f"{each:.0f} constants",
        )
