"""Bank conflicts of shared memory."""

from __future__ import annotations

from collections.abc import Iterable

from gpusim.advice.evidence import Evidence, when
from gpusim.advice.records import Advice
from gpusim.advice.registry import rule
from gpusim.tracing import lanes
from gpusim.tracing.execution import Execution

SYMPTOMS = frozenset({"short-scoreboard", "mio-throttle"})


@rule("bank-conflict", removal="bank-conflicts")
def bank_conflicts(evidence: Evidence) -> Iterable[Advice]:
    """Lanes of a warp that want different words of one bank."""
    for line, numbered in evidence.by_line.items():
        shared = [p for p in numbered if p.execution.space == "shared"]
        cost = sum(p.times * lanes.replays(p.execution) for p in shared)
        if not evidence.is_worth_saying(cost):
            continue
        worst = max(
            shared, key=lambda p: (lanes.replays(p.execution), len(lanes.on_lanes(p.execution)))
        )
        extra = evidence.count(line, "shared_load_bank_conflicts", "shared_store_bank_conflicts")
        total = evidence.count(line, "shared_load_wavefronts", "shared_store_wavefronts")
        cause = _cause(worst.execution, evidence.trace.cc)
        message = f"line {line}: {cause}{when(worst, shared)}"
        if total and evidence.is_whole:
            message += f"; {extra:,} of the line's {total:,} wavefronts are excessive"
        elif total:
            message += f"; {100 * extra / total:.0f} % of the line's wavefronts are excessive"
        yield Advice("bank-conflict", line, message + ".", cost, explains=SYMPTOMS, cause=cause)


def _cause(execution: Execution, cc: str) -> str:
    on = lanes.on_lanes(execution)
    table = lanes.words_in_banks(execution, lanes.bank_count(cc))
    step = lanes.stride(execution)
    least = execution.least_wavefronts
    instead = f" instead of {least}" if least > 1 else ""
    banks = f"{len(table)} bank{'s' if len(table) != 1 else ''}"
    cost = f"{execution.wavefronts} wavefronts each{instead}"
    if step is not None:
        return f"stride {abs(step)} puts {len(on)} lanes on {banks}, {cost}"
    deepest = max((len(words) for words in table.values()), default=0)
    return (
        f"{len(on)} lanes of {execution.array} fall on {banks}, "
        f"up to {deepest} different words in one, {cost}"
    )
