"""What tests of the page share: a kernel to show, and the meaning of the steps on a page."""

from __future__ import annotations

from functools import cache
from typing import Any

import gpusim
from gpusim import catalogue
from gpusim.prediction.jobs import catalogue_job
from gpusim.reports.page.sections import Subject
from gpusim.tracing.block_steps import BlockSteps


@cache
def subject(name: str = "reduce2", block: int = 64, device: str = "") -> Subject:
    """Two blocks of a kernel of the catalogue, without and with a prediction."""
    call = catalogue.find(name).call(catalogue.sample(2 * block, "int32"), block=block)
    steps = BlockSteps(0)
    trace = gpusim.trace(call.configured, *call.arguments, observers=[steps])
    job = catalogue_job(catalogue.Request(name, 2 * block, block))
    return Subject(trace, steps, job.on(device) if device else None)


def replayed(document: dict[str, Any], upto: int) -> dict[int, str]:
    """What the page's script makes of the steps: the text of each element by its first byte."""
    found: dict[int, str] = {}
    for _, _, _, written, _ in document["steps"][: upto + 1]:
        found |= {place: text for place, _, text in written}
    return found
