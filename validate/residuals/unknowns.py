"""What predictions of the other kernels sample, extrapolate and suppose, with nvcc's code.

`python -m validate.residuals unknowns` goes on with unknowns.csv, in a random order of launches.
"""

from __future__ import annotations

import csv
import random

from gpusim.codegen.generators import NVCC
from gpusim.errors import GpusimError
from gpusim.prediction.predict import predict

from .records import FOLDER, H200, rows_of

TABLE = FOLDER / "unknowns.csv"
COLUMNS = "kernel", "n", "code", "unknown"
SEED = 5


def record() -> None:
    """Append rows, launch by launch."""
    from ..others import launches  # a data set of a source checkout
    from ..others.compare import configured

    known = {(row["kernel"], int(row["n"])) for row in rows_of(TABLE)}
    wanted = {row["kernel"] for row in rows_of(FOLDER / "others.csv")}
    asked = [
        launch for launch in launches() if launch.kernel.name in wanted and launch.key not in known
    ]
    random.Random(SEED).shuffle(asked)
    for launch in asked:
        try:
            made = predict(configured(launch, NVCC), *launch.specified(), device=H200)
        except GpusimError:
            continue
        with TABLE.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*launch.key, NVCC, "; ".join(made.unknown)])
