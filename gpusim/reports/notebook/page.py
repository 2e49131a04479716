"""The page of `gpusim report` within a notebook: a frame that holds all that it shows."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from gpusim.advice.findings import find
from gpusim.errors import InputError
from gpusim.gpu import device as devices
from gpusim.gpu.device import Device
from gpusim.prediction.predict import predict_prepared
from gpusim.prediction.sweeps.jobs import Forecast, Job, KernelLaunch
from gpusim.reports.page.render import page
from gpusim.reports.page.sections import Subject
from gpusim.tracing.block_steps import BlockSteps
from gpusim.tracing.records import Trace
from gpusim.tracing.repeat import MOST_BYTES, Repeat
from gpusim.tracing.trace import source_of, trace_prepared

HEIGHT = 900  # of the frame, in pixels


@dataclass(frozen=True)
class Framed:
    """A page for a notebook, `height` pixels high."""

    title: str
    document: str
    height: int = HEIGHT

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="{escape(self.title)}" srcdoc="{escape(self.document)}" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<{self.title}: a page of {len(self.document):,} characters>"


def show(
    trace: Trace, device: str | Path | Device | None = "h200", *, height: int = HEIGHT
) -> Framed:
    """Return the page of a traced launch, with its predicted time on a GPU, for a notebook.

    The launch runs again, on copies of its arrays from before the first run, for the steps of the
    block and on the GPU named; without a GPU nothing is predicted. InputError where the arrays were
    too large to keep, or without Jinja2.
    """
    repeat = trace.repeat
    if repeat is None:
        raise InputError(
            f"the arrays of {trace.kernel} are larger than {MOST_BYTES >> 20} MiB, and no copies "
            "were kept to run it again; trace a smaller launch, or use gpusim report"
        )
    gpu = devices.load(device) if device is not None else None
    return Framed(f"gpusim report of {trace.kernel}", page([_subject(trace, repeat, gpu)]), height)


def _subject(trace: Trace, repeat: Repeat, device: Device | None) -> Subject:
    prepared = trace.prepared
    assert prepared is not None
    cc = device.cc if device is not None else prepared.cc
    steps = BlockSteps(trace.block_index, registers=True)
    made = trace_prepared(
        repeat.prepared(cc),
        block_index=trace.block_index,
        observers=[steps],
        source=source_of(repeat.configured, repeat.arguments, cc, repeat.level),
    )
    if device is None:
        return Subject(made, steps)
    prediction = predict_prepared(repeat.prepared(cc), device, timeline=True)
    job = Job(trace.kernel, (KernelLaunch(repeat.configured, repeat.arguments, code=repeat.code),))
    vars(made)["findings"] = find(made, prediction)
    return Subject(made, steps, Forecast(job, (prediction,)))
