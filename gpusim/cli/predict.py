"""`gpusim predict`: a kernel's duration on a named GPU, its limiter, and remedies."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.cli.check import also_checked, lines_after, with_findings
from gpusim.cli.findings_formats import chosen_format, print_advice
from gpusim.cli.launches import resolved
from gpusim.cli.options import (
    ARGUMENT_ORDER,
    COMPILING,
    SIZES_OF_N,
    WITH_ELEMENTS,
    Command,
    Option,
    options,
    print_document,
    print_lines,
)
from gpusim.cli.progress import Bar
from gpusim.cli.timing import device_of, how, removals_of

if TYPE_CHECKING:
    from gpusim.gpu.device import Device
    from gpusim.prediction.removals import Removal
    from gpusim.prediction.sweeps.ablation import Ablation
    from gpusim.prediction.sweeps.jobs import Forecast, Job


def predict(chosen: Namespace) -> int:
    """Predict a kernel's time on a GPU and explain it.

    Time, throughput and the limiter; stalls, source lines and classes of blocks; the simulated
    and the extrapolated part; remedies.

    A kernel of the catalogue needs its name and a size alone. A kernel of your own is named by its
    file, with its grid, block and arguments.
    """
    kind = chosen_format(chosen)
    mechanisms, removals = removals_of(chosen.without)
    device = device_of(chosen.device, mechanisms, chosen.changed)
    job = job_of(chosen)
    timeline = chosen.timeline or chosen.perfetto is not None
    made = forecast(chosen, job, device, timeline=timeline, removals=removals)
    if chosen.perfetto is not None:
        _write_events(made, chosen.perfetto)
    is_whole = not (chosen.without or chosen.changed)
    whole = None if is_whole else forecast(chosen, job, device_of(chosen.device, None))
    findings, code = also_checked(chosen)
    from gpusim.advice.launch import forecast_advice
    from gpusim.reports.prediction import Answer, prediction_document, prediction_report

    found = forecast_advice(made)
    answer = Answer(made, whole, _why(made) if chosen.why else None, found)
    if kind == "json":
        print_document("predict", with_findings(prediction_document(answer), findings))
    elif kind != "text":
        print_advice(found, made.first.prepared.source_file, findings, kind)
    else:
        print_lines(
            lambda width: prediction_report(
                answer,
                width,
                whole=chosen.all,
                after=lines_after(findings, width, whole=chosen.all),
            )
        )
    return code


COMMAND = Command(
    "predict",
    predict,
    options(
        "kernel",
        "--device -n --block --l2 --passes --without --set",
        Option("--timeline", "draw the stalls of the warps of the SM's first block over time"),
        "--perfetto",
        Option("--why", "ablations: simulate again without each relevant mechanism, one by one"),
        "--grid --cluster --op --dtype --coarse --arg --shared-bytes",
        COMPILING,
        "--code --step-limit --check --all --format --json --sarif",
    ),
    (
        f"""{ARGUMENT_ORDER}
  data=float32[2^26]       an array by type and shape, without elements
  idx=int32[4096]=arange   {WITH_ELEMENTS}
  int32@numbers.csv        an array from a file, .npy, .csv or text
  n=uint32(65536), 0.5     a number
  null                     a null pointer of CUDA C++
  int32[n], ceil(n/block)  {SIZES_OF_N}""",
        """examples:
  gpusim predict reduce3 --device h200 -n 2^26 --block 256
  gpusim predict reduce2 -n 2^26 --block 256 --without bank-conflicts
  gpusim predict reduce2 -n 2^26 --block 256 --without bank-conflicts@81
  gpusim predict reduce7 -n 2^26 --set bandwidth.dram_gbps=3000
  gpusim predict reduce2 -n 2^20 --block 128 --timeline --perfetto t.json
  gpusim predict reduce7 --device my-gpu.toml -n 2^26 --passes all --why
  gpusim predict mine.py:saxpy --grid 65536 --block 256 --arg 2.0 \\
      --arg "x=float32[2^24]" --arg "y=float32[2^24]" --arg "n=2^24\"""",
    ),
)


def job_of(chosen: Namespace) -> Job:
    """Return the requested job; InputError if it is impossible."""
    how(chosen)
    launch = resolved(chosen, is_timed=True)
    return replace(launch.job(), description=launch.description)


def forecast(
    chosen: Namespace,
    job: Job,
    device: Device,
    *,
    timeline: bool = False,
    removals: Sequence[Removal] = (),
) -> Forecast:
    """Return the prediction of a job on a device, with the requested options."""
    from gpusim.cli.selection import step_limit

    limit = step_limit(chosen)
    return job.in_code(chosen.code).on(
        device, l2=how(chosen)[1], step_limit=limit, timeline=timeline, removals=removals
    )


def _write_events(made: Forecast, name: str) -> None:
    """Write the timeline of the first launch to a file that Perfetto opens."""
    from gpusim.reports.perfetto import prediction_events, write_events

    assert made.first.timeline is not None
    write_events(prediction_events(made.first, made.first.timeline), Path(name))


def _why(made: Forecast) -> list[Ablation]:
    """Return the job's time without each mechanism that it meets."""
    from gpusim.prediction.sweeps.ablation import ablations, suspects

    names = list(suspects(made))
    with Bar(len(names), "mechanisms") as bar:
        bar.start()
        return ablations(made, names, progress=bar.advance)
