"""Advice on a predicted launch: one of its blocks is traced, and gains are simulated."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.advice.findings import find
from gpusim.advice.records import Advice
from gpusim.advice.timed.limits import limit_of
from gpusim.errors import GpusimError
from gpusim.launch.prepared import Prepared
from gpusim.prediction.bounds import SPINNING
from gpusim.prediction.records import Prediction
from gpusim.prediction.streams import without_results
from gpusim.prediction.sweeps.jobs import Forecast
from gpusim.tracing.records import Trace
from gpusim.tracing.trace import source_of, trace_prepared


def forecast_advice(forecast: Forecast) -> list[Advice]:
    """Return advice on the first launch of a job that was predicted."""
    launch, prediction = forecast.job.launches[0], forecast.first
    source = source_of(launch.configured, launch.arguments, forecast.device.cc)
    return advice_on(prediction, source, grid_is_open=forecast.job.grid_is_open)


def advice_on(
    prediction: Prediction,
    source: Callable[[], Prepared] | None = None,
    *,
    grid_is_open: bool = True,
) -> list[Advice]:
    """Return advice on a predicted launch; `source` prepares it in the lowering's code.

    The limit is the only advice where blocks wait for each other, as other changes hardly affect
    the time, and where a block cannot run without the others.
    """
    if any(bound.name == SPINNING for bound in prediction.bounds):
        return [limit_of(prediction)]
    try:
        trace = typical_block(prediction, source)
    except GpusimError:
        return [limit_of(prediction)]
    return find(trace, prediction, grid_is_open=grid_is_open)


def typical_block(prediction: Prediction, source: Callable[[], Prepared] | None = None) -> Trace:
    """Return the trace of a block of the largest class."""
    assert prediction.setting is not None
    largest = max(prediction.classes.classes, key=lambda one: one.blocks)
    block = largest.ranges[0][0]
    return trace_prepared(
        without_results(prediction.setting.usual), block_index=block, chosen=[block], source=source
    )
