"""Launches predicted with intervals before they were measured: other kernels, and the catalogue's.

`python -m validate.residuals predict` writes held.csv; `python -m validate.residuals measure FILE`
times the catalogue's on a GPU, into a file like the ones of `measured/`.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpusim.catalogue import REDUCTION
from gpusim.codegen.generators import NVCC
from gpusim.errors import GpusimError
from gpusim.prediction.predict import predict
from gpusim.prediction.records import Prediction
from gpusim.prediction.sweeps.jobs import catalogue_job

from ..cases import BLOCKS, OTHER_DTYPES, Pair
from ..records import L2_STATES, Case
from ..twins import twinned
from .records import FOLDER, H200

TABLE = FOLDER / "held.csv"
COLUMNS = (
    "kernel", "n", "block", "dtype", "l2", "code", "kind", "low_us", "predicted_us", "high_us",
)  # fmt: skip
SIZES = 1_000_000, 2**21, 3 * 2**20, 5_000_000, 2**23, 20_000_000, 2**25, 3 * 2**24
OTHER_BLOCKS = (32, 96, 192, 384, 768)
MOST = 60
SEED = 28


def cases() -> list[Pair]:
    """Return launches of the catalogue at sizes that were not measured, drawn at random."""
    draw, found = random.Random(SEED), dict[Pair, None]()
    kernels = [one for one in twinned() if one.family is REDUCTION and one.defect is None]
    while len(found) < MOST:
        kernel = draw.choice(kernels)
        block, n = draw.choice((*BLOCKS, *OTHER_BLOCKS)), draw.choice(SIZES)
        first = kernel.dtypes[0]
        dtypes = [one for one in OTHER_DTYPES if one in kernel.dtypes]
        dtype = first if draw.random() < 0.7 else draw.choice(dtypes or [first])
        case = Case(n, block, dtype, l2=draw.choice(L2_STATES))
        if kernel.block_rule.allows(block) and _fits(kernel, case):
            found[kernel, case] = None
    return list(found)


def _fits(kernel: Any, case: Case) -> bool:
    try:
        case.setups(kernel)
    except GpusimError:
        return False
    return True


def rows() -> Iterator[list[Any]]:
    """Yield the predictions, with nvcc's code on the H200."""
    for kernel, case in cases():
        job = catalogue_job(case.request(kernel)).in_code(NVCC)
        made = job.on(H200, l2=case.l2).first
        yield [kernel.name, case.n, case.block, case.dtype, case.l2, NVCC, *_cells(made)]
    from ..others import launches  # a data set of a source checkout
    from ..others.compare import configured
    from ..others.plans import HELD

    for launch in launches(HELD):
        for l2 in L2_STATES:
            kernel = configured(launch, NVCC)
            made = predict(kernel, *launch.specified(), device=H200, l2=l2)
            yield [*launch.key, "", "", l2, NVCC, *_cells(made)]


def _cells(made: Prediction) -> list[str]:
    low, high = made.interval_us
    return [made.interval.kind, *(f"{us:.3f}" for us in (low, made.time_us, high))]


def predict_all() -> None:
    """Write the table of predictions, row by row."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows():
            writer.writerow(row)
            file.flush()


def measure(path: Path) -> None:
    """Time the catalogue's launches and write them as a file of measurements."""
    from .. import files
    from ..measure import measure_all

    files.write(path, measure_all(cases(), H200, lambda _: None))
