"""Predicts measured launches for the records of intervals and of pairs.

A GPU of a measured generation is imitated by the measured one: `SIBLINGS` gives the device file
that predicts its launches, with the numbers of its own data sheet and nothing measured on it.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Mapping
from functools import cache

from gpusim.catalogue import Request, find
from gpusim.codegen.generators import LOWERING, NVCC
from gpusim.errors import GpusimError
from gpusim.gpu import device as devices
from gpusim.gpu.device import Device
from gpusim.prediction.predict import predict
from gpusim.prediction.records import total_time_us
from gpusim.prediction.sweeps.jobs import catalogue_job
from gpusim.prediction.uncertainty.kinds import DESCRIBED, GENERATION, MEASURED

from .. import files, twins
from ..compare import LEAST_ELEMENTS_PUBLISHED
from ..records import Measurement
from .records import FOLDER, GENERATIONS, H200, PUBLISHED, rows_of

SIBLINGS = {H200: "h100"}  # measured GPU: another one of its generation
PAIRS = FOLDER / "pairs.csv"
COLUMNS = (
    "gpu", "device", "kernel", "n", "block", "dtype", "grid", "coarse", "l2", "measured_us",
    "nvcc_us", "lowering_us",
)  # fmt: skip
ORIGIN = (
    "# Launches of validate/measured/ with a cold L2, predicted again with each generator: "
    "one pass, of published times all passes.\n"
    "# As a GPU of a measured generation the H200 is predicted with the H100's file and its own "
    "data sheet. Written by gpusim validate certainty --predict.\n"
)
SAME_GENERATION_SIZES = 2**22, 2**24
SOME_OTHERS = 150
SEED = 7


@cache
def sibling(name: str) -> Device:
    """Return a measured GPU as another one of its generation is described: by its data sheet."""
    own, other = devices.load(name), devices.load(SIBLINGS[name])
    peak = own.bandwidth.dram_peak_gbps
    reached = other.bandwidth.dram_gbps / other.bandwidth.dram_peak_gbps
    return other.having(
        {
            "bandwidth.dram_peak_gbps": peak,
            "bandwidth.dram_gbps": reached * peak,
            "capacity.l2_bytes": own.capacity.l2_bytes,
        }
    )


def predicted_us(measured: Measurement, gpu: Device, code: str) -> float | None:
    """Return the predicted time of a measured launch, None where it cannot be predicted."""
    case = measured.case
    try:
        passes = []
        for number, setup in enumerate(case.setups(find(measured.kernel))):
            l2 = "warm" if number else case.l2
            if code == LOWERING:
                job = catalogue_job(Request.of(setup)).in_code(LOWERING)
                passes.append(job.on(gpu, l2=l2).first)
            else:
                passes.append(predict(twins.configured(setup), *setup.specs, device=gpu, l2=l2))
    except GpusimError:
        return None
    return total_time_us(passes)


def record_pairs() -> None:
    """Write pairs.csv."""
    with PAIRS.open("w", encoding="utf-8", newline="") as file:
        file.write(ORIGIN)
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for one, about, gpu, codes in wanted():
            writer.writerow(pair_row(one, about, {c: predicted_us(one, gpu, c) for c in codes}))


def pair_row(
    one: Measurement, about: Mapping[str, str], times: Mapping[str, float | None]
) -> dict[str, object]:
    """Return a launch's row of pairs.csv."""
    case = one.case
    predicted = {f"{code}_us": f"{us:.5g}" for code, us in times.items() if us is not None}
    return {
        **about,
        "kernel": one.kernel,
        **{name: getattr(case, name) for name in ("n", "block", "dtype", "grid", "coarse", "l2")},
        "measured_us": f"{one.time_us:.5g}",
        **predicted,
    }


def wanted() -> Iterator[tuple[Measurement, Mapping[str, str], Device, tuple[str, ...]]]:
    """Yield the launches of pairs.csv, with their GPU's columns, its file and the generators."""
    both = NVCC, LOWERING
    for name in (H200, "h200-tuning"):
        for one in files.load(name).times:
            if one.time_us is not None and (one.case.l2, one.case.scope) == ("cold", "single"):
                yield one, {"gpu": MEASURED, "device": H200}, devices.load(H200), both
    for one in files.load(H200).times:
        is_single = (one.case.l2, one.case.scope) == ("cold", "single")
        if one.time_us is not None and is_single and one.case.n in SAME_GENERATION_SIZES:
            yield one, {"gpu": GENERATION, "device": H200}, sibling(H200), (LOWERING,)
    for name in PUBLISHED:
        for one in files.load(name).times:
            if one.time_us is not None and one.case.n >= LEAST_ELEMENTS_PUBLISHED:
                yield one, {"gpu": DESCRIBED, "device": name}, devices.load(name), both


def record_generations() -> None:
    """Append other kernels' launches to generations.csv, those of pairs.csv come from there."""
    from ..others import launches  # a data set of a source checkout
    from ..others.compare import configured

    known = {row["kernel"]: row["mechanism"] for row in rows_of(FOLDER / "others.csv")}
    times = {
        (row["kernel"], int(row["n"])): row
        for row in rows_of(FOLDER.parent / "others" / "h200.csv")
    }
    asked = [one for one in launches() if one.kernel.name in known and one.key in times]
    random.Random(SEED).shuffle(asked)
    with GENERATIONS.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for launch in asked[:SOME_OTHERS]:
            try:
                made = predict(configured(launch, NVCC), *launch.specified(), device=sibling(H200))
            except GpusimError:
                continue
            measured = times[launch.key]["cold_us"]
            mechanism = known[launch.kernel.name]
            writer.writerow([H200, *launch.key, NVCC, mechanism, measured, f"{made.time_us:.5g}"])
            file.flush()
