"""`gpusim compare`: two launches side by side, in time, counters and results."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpusim.cli.launches import resolved
from gpusim.cli.options import (
    COMPILING,
    LAUNCHING,
    Command,
    Option,
    options,
    print_document,
    print_lines,
    side,
)
from gpusim.cli.references import Reference
from gpusim.cli.timing import device_of, how, removals_of
from gpusim.errors import InputError

if TYPE_CHECKING:
    from gpusim.catalogue import Call
    from gpusim.cli.results import Agreement, Outputs
    from gpusim.launch.grid import ComputeCapability
    from gpusim.reports.comparison import Comparison, Side

DIFFERENT = 1
SAVED = ".json"
# Options of each side, or of both.
OF_A_SIDE = options("--device", LAUNCHING, COMPILING, "--l2 --without --set --code --step-limit")


def compare(chosen: Namespace) -> int:
    """Compare two launches: time, counters and output arrays.

    Each is a kernel with options of its own, in quotes; options after both are for both. Either
    may be a file FILE.json with the output of `gpusim predict --json` or `gpusim trace --json`. The
    exit code is 1 for different results. `gpusim report A B` is the page of both.
    """
    from gpusim.reports.comparison import comparison_document, comparison_report

    made = compared(chosen)
    if chosen.json:
        print_document("compare", comparison_document(made.sides, made.found))
    else:
        print_lines(lambda width: comparison_report(made.sides, made.found, width))
    return 0 if all(one.agrees for one in made.found or ()) else DIFFERENT


def compared(chosen: Namespace) -> Comparison:
    """Return two launches side by side, run and predicted or saved."""
    from gpusim.reports.comparison import Comparison

    chosen.passes = "one"
    texts = chosen.first, chosen.second
    both = [None if _is_saved(text) else _side_options(text, chosen) for text in texts]
    sides = [
        _saved(text) if one is None else _side(one) for text, one in zip(texts, both, strict=True)
    ]
    return Comparison(sides, _agreements([one for one in both if one is not None], sides))


def _side_options(text: str, chosen: Namespace) -> Namespace:
    return side(text, chosen, OF_A_SIDE, "compare")


def _is_saved(text: str) -> bool:
    return text.endswith(SAVED)


def _saved(name: str) -> Side:
    """Return the launch of a saved document; InputError where the file has none."""
    from gpusim.reports.comparison import saved_side

    try:
        document = json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{name} cannot be read as JSON: {error}") from None
    return saved_side(name, document)


def _agreements(both: Sequence[Namespace], sides: Sequence[Side]) -> list[Agreement] | None:
    """Return whether two launches have equal results; None if one of them was not run."""
    from gpusim.cli.results import agreements

    if len(both) < len(sides):
        return None
    one, other = _results(both) or [side.outputs for side in sides]
    return agreements(one, other)


def _results(both: Sequence[Namespace]) -> list[Outputs] | None:
    """Return the final results of two kernels of the catalogue, of all passes; else None."""
    if any(Reference.of(chosen.kernel).file for chosen in both):
        return None
    from gpusim import machine
    from gpusim.catalogue import find
    from gpusim.cli.results import Outputs
    from gpusim.cli.selection import selected, step_limit
    from gpusim.codegen.programs import prepare

    made = []
    for chosen in both:
        cc, limit = device_of(chosen.device, None).cc, step_limit(chosen)

        def launch(
            call: Call, cc: ComputeCapability = cc, limit: int = limit, code: str = chosen.code
        ) -> None:
            prepared = prepare(call.configured, call.arguments, cc, code=code)
            machine.run(prepared, step_limit=limit)

        result = {"result": selected(find(chosen.kernel), chosen).run(launch)[-1].result}
        made.append(Outputs(result, result))
    return made


def _side(chosen: Namespace) -> Side:
    """Return a launch, run and predicted."""
    from gpusim.cli.progress import Patience
    from gpusim.cli.results import arrays_of, copied, outputs
    from gpusim.cli.selection import step_limit
    from gpusim.codegen.programs import prepare
    from gpusim.reports.comparison import launched_side
    from gpusim.tracing.trace import trace_prepared

    mechanisms, removals = removals_of(chosen.without)
    device = device_of(chosen.device, mechanisms, chosen.changed)
    launch, timed = resolved(chosen), resolved(chosen, is_timed=True)
    configured, values = launch.filled()
    limit = step_limit(chosen)
    job = replace(timed.job(), description=timed.description).in_code(chosen.code)
    forecast = job.on(device, l2=how(chosen)[1], step_limit=limit, removals=removals)
    arrays = arrays_of(configured, values)
    before = copied(arrays)
    prepared = prepare(configured, values, device.cc, code=chosen.code)
    progress = Patience(configured.launch.blocks)
    traced = trace_prepared(prepared, step_limit=limit, progress=progress)
    traced = replace(traced, description=launch.description)
    prepared.give_back()
    return launched_side(
        chosen.kernel, forecast, traced, outputs(arrays, before, configured.launch.blocks)
    )


COMMAND = Command(
    "compare",
    compare,
    options(
        Option("first", "a kernel, with options of its own in quotes; or FILE.json", "A"),
        Option("second", "another one, or the same with other options", "B"),
        *OF_A_SIDE,
        "--json",
    ),
    (
        """examples:
  gpusim compare reduce1 reduce7 -n 2^16
  gpusim predict reduce7 -n 2^16 --json > before.json; gpusim compare before.json reduce7 -n 2^16
  gpusim compare "k.cu:scale --device h200" "k.cu:scale --device rtx4090" \\
      --grid 64 --block 256 --arg 'float32[16384]' --arg 16384
  gpusim compare "k.cu:naive --block 16x16" "k.cu:tiled --block 32x8" -n 256 \\
      --grid 'ceil(n/16)xceil(n/16)' --arg 'float32[n*n]' \\
      --arg 'float32[n*n]' --arg 'float32[n*n]' --arg n""",
        "arrays without a filling are random numbers, the same for both",
    ),
)
