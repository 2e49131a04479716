"""What tests of the page share: a kernel to show, and the meaning of the steps on a page."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import gpusim
from gpusim import catalogue
from gpusim.prediction.sweeps.jobs import catalogue_job
from gpusim.reports.page.sections import Subject
from gpusim.tracing.block_steps import BlockSteps


@cache
def subject(
    name: str = "reduce2", block: int = 64, device: str = "", dtype: str = "int32", code: str = ""
) -> Subject:
    """Two blocks of a kernel of the catalogue, without and with a prediction."""
    call = catalogue.find(name).call(catalogue.sample(2 * block, dtype), block=block)
    steps = BlockSteps(0, registers=True)
    chosen = {"code": code} if code else {}
    trace = gpusim.trace(call.configured, *call.arguments, observers=[steps], **chosen)
    job = catalogue_job(catalogue.Request(name, 2 * block, block))
    return Subject(trace, steps, job.on(device, timeline=True) if device else None)


def replayed(document: dict[str, Any], upto: int) -> dict[int, str]:
    """What the page's script makes of the steps: the text of each element by its first byte."""
    found: dict[int, str] = {}
    for pc, _, _, written, *_ in document["steps"][: upto + 1]:
        kind = document["code"][pc][2]
        found |= {place: shown(int(bits), width, kind) for place, width, bits in written}
    return found


def shown(bits: int, width: int, kind: str) -> str:
    """A signed number's bits as the page shows an element of a type: floats with six digits."""
    value = np.array([bits], f"i{width}").view(kind)[0].item()
    if not isinstance(value, float):
        return str(int(value))
    rounded = float(f"{value:.6g}")
    return str(int(rounded)) if rounded.is_integer() else str(rounded)
