"""`gpusim tune`: the best launch of a kernel on a GPU."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.cli.options import (
    DEFAULT_DEVICE,
    DISTRIBUTION,
    KERNELS,
    OWN,
    Command,
    Option,
    options,
    print_document,
    print_lines,
)
from gpusim.cli.output import complain
from gpusim.cli.progress import Bar
from gpusim.cli.timing import L2_KNOWN, device_of, distribution, none_can_run, one_of
from gpusim.errors import InputError

if TYPE_CHECKING:
    from gpusim.catalogue import Request
    from gpusim.cli.own_requests import OwnRequest
    from gpusim.launch.description import LaunchDescription
    from gpusim.prediction.sweeps.choices import Choices, Value
    from gpusim.prediction.sweeps.sweep import Case
    from gpusim.prediction.sweeps.tuning import Tuned

SHOWN = 8  # candidates of a launch in the table


def tune(chosen: Namespace) -> int:
    """Search the best launch of kernels: block, grid, coarsening factor, parameters.

    Every candidate is predicted; candidates tie where measured pairs do not settle the order.
    Candidates with a fault, a race, or other results than the file's own launch are listed apart.
    A kernel of the catalogue is tuned over the blocks, coarsening factors and full waves of its
    launch rule, a kernel of your own over the given alternatives. --tune varies a
    macro, a constant or a template argument of its file, and names in --block, --grid and --arg.
    More than 256 candidates of a kernel are searched by successive halving.
    """
    from gpusim.cli import inputs
    from gpusim.reports.tuning import tuning_document, tuning_report

    shown = inputs.count(chosen.top, "--top") if chosen.top else SHOWN
    found = tuned(chosen)
    if chosen.json:
        print_document("tune", tuning_document(found))
    else:
        print_lines(lambda width: tuning_report(found, shown, width))
    return 0


def tuned(chosen: Namespace) -> list[Tuned]:
    """Return the candidates of each kernel, device and size."""
    from gpusim.prediction.sweeps.tuning import best_launches

    cases, compared = _cases(chosen)
    with Bar(len(cases), "candidates") as bar:

        def rung(asked: Sequence[Case]) -> Mapping[str, Any]:
            bar.restart(len(asked))
            return {}

        found = best_launches(
            cases,
            Path(chosen.out) if chosen.out is not None else None,
            rung=rung,
            **distribution(chosen),
            overwrite=chosen.overwrite,
            started=bar.start,
            progress=lambda case: bar.advance(f"{case.request.kernel} {case.device}"),
            remark=complain,
        )
    _require_candidates(found, compared, cases)
    described = {case.request.kernel: case for case in cases}
    return [
        replace(one, description=_description(described[one.kernel], one.n, chosen))
        for one in found
    ]


def _description(case: Case, n: int | None, chosen: Namespace) -> LaunchDescription:
    """Return the description of the reference launch of a case's candidates."""
    from gpusim.catalogue import Request
    from gpusim.cli.launches import by_its_rule
    from gpusim.cli.own_requests import OwnRequest

    if isinstance(case.request, Request):
        return by_its_rule(
            case.request.sized(n, None), Namespace(**{**vars(chosen), "grid": None, "block": None})
        )
    assert isinstance(case.first, OwnRequest)
    return case.first.sized(n, None).launch().description


def _require_candidates(
    found: Sequence[Tuned], compared: Collection[str], cases: Sequence[Case]
) -> None:
    """Raise InputError where none of the candidates can run, on no GPU and at no size.

    The launch rules of `compared` kernels are not candidates: they are shown beside these.
    A grid of full waves ends where there are no more elements, which may be the rule's grid.
    """
    from gpusim.prediction.sweeps.choices import WAVES

    rows = [row for one in found for row in (*one.rows, *one.rejected)]
    if any(row["choices"] or row["kernel"] not in compared for row in rows):
        return
    reasons: dict[str, str] = {}
    for row in (row for one in found for row in one.cannot):
        if row["choices"] or row["kernel"] not in compared:
            reasons.setdefault(row["reason"], row["choices"] or "launch rule")
    if not reasons:
        least = min(value for case in cases for name, value in case.choices if name == WAVES)
        fullest = max(rows, key=lambda row: row["waves"])
        if fullest["waves"] >= least:  # the rule's launch is the one requested
            return
        reason = (
            "n = {n:,} is too small for as many full waves: its {grid:,} blocks of {block} threads "
            "are {waves:.2f} waves on {device}; give a larger -n".format(**fullest)
        )
        reasons[reason] = f"{WAVES}={least}"
    raise none_can_run("candidates", reasons)


def _cases(chosen: Namespace) -> tuple[list[Case], set[str]]:
    """Return the candidates of all kernels, sizes and GPUs, those without choices first.

    With them come the kernels whose launch rule is not among the launches that are requested.
    """
    from gpusim.catalogue import Request
    from gpusim.cli import inputs
    from gpusim.cli.own_requests import first_launch, request_of
    from gpusim.cli.selection import step_limit
    from gpusim.cli.tuning_parameters import axes as parameters
    from gpusim.codegen.generators import chosen as code_chosen
    from gpusim.prediction.sweeps.choices import axes_of, crossed_choices
    from gpusim.prediction.sweeps.sweep import Case

    l2 = one_of(chosen.l2, L2_KNOWN, "--l2")
    if not chosen.kernels:
        raise InputError("there is no kernel to tune; name one at least")
    gpus = inputs.listed(chosen.device, "--device")
    devices = [device_of(name, None, chosen.changed) for name in gpus]
    asked = Namespace(**{**vars(chosen), "passes": "one", "axes": parameters(chosen.tune or [])})
    given = _axes(asked)
    limits = _limits(chosen)
    most_steps, code = step_limit(chosen), code_chosen(chosen.code)
    sizes = [None] if chosen.n is None else inputs.counts(chosen.n, "-n", "a size")
    cases = []
    compared = set()
    for name in chosen.kernels:
        request = request_of(name, asked, [device.cc for device in devices])
        choices: list[Choices] = []
        axes = given
        if isinstance(request, Request):
            choices.append(())  # the launch rule's own
            axes = given or axes_of(request)
        _require_axes(request, axes)
        asked_for = list(crossed_choices(axes))
        others = [one for one in asked_for if not _is_the_rules(one, request)]
        if given and len(others) == len(asked_for):
            compared.add(request.kernel)
        choices += others
        first = None if isinstance(request, Request) else first_launch(request, choices[0])
        cases += [
            Case(
                request.sized(n, None),
                gpu,
                first=None if first is None else first.sized(n, None),
                l2=l2,
                step_limit=most_steps,
                code=code,
                changed=devices[0].changed,
                choices=one,
                limits=limits,
            )
            for gpu in gpus
            for n in sizes
            for one in choices
        ]
    return cases, compared


def _limits(chosen: Namespace) -> tuple[tuple[str, int], ...]:
    """Return the limits on registers of a thread and shared memory of a block, by name."""
    from gpusim.cli import inputs

    given = (
        ("registers", "--max-registers", chosen.max_registers),
        ("shared_bytes", "--max-shared", chosen.max_shared),
    )
    return tuple(
        (name, inputs.count(text, option)) for name, option, text in given if text is not None
    )


def _is_the_rules(choices: Choices, request: Request | OwnRequest) -> bool:
    """Return whether choices are those of a catalogue kernel's launch rule."""
    from gpusim.catalogue import Request

    if not isinstance(request, Request):
        return False
    entry = request.entry
    rule = {"block": entry.default_block, "coarse": entry.default_coarse}
    return all(rule.get(name) == value for name, value in choices)


def _axes(chosen: Namespace) -> dict[str, Sequence[Value]]:
    """Return the alternatives that the options give, by the name of what varies."""
    from gpusim.cli import inputs

    axes: dict[str, Sequence[Value]] = {}
    if chosen.block is not None:
        axes["block"] = _blocks(chosen.block, chosen.axes)
    for name in ("coarse", "waves"):
        text = getattr(chosen, name)
        if text is not None:
            axes[name] = inputs.counts(text, f"--{name}", f"a value of --{name}", most=2**16)
    if chosen.waves is not None and chosen.grid is not None:
        raise InputError("--waves makes the grid; give it or --grid")
    return {**axes, **chosen.axes}


def _blocks(text: str, parameters: Mapping[str, Sequence[str]]) -> list[int | str]:
    """Return the alternatives for a block; parts with names of parameters stay as they are."""
    from gpusim.cli import inputs

    found: list[int | str] = []
    for part in inputs.listed(text, "--block"):
        has_name = any(name in part for name in parameters)
        found += [part] if has_name else inputs.blocks(part, "--block")
    return found


def _require_axes(request: Request | OwnRequest, axes: Mapping[str, Sequence[Value]]) -> None:
    """Raise InputError if nothing varies, or a kernel has no such parameter."""
    from gpusim.catalogue import Request
    from gpusim.prediction.sweeps.choices import require_axes

    if not axes:
        raise InputError(
            f"nothing varies: give --block 64..1024, --waves 1..8 or --tune NAME=8,16 for "
            f"{request.kernel}"
        )
    if "coarse" in axes and not isinstance(request, Request):
        raise InputError(
            f"--coarse is for kernels of the catalogue; for {request.kernel} give --tune NAME=1..32"
        )
    require_axes(request, axes)


COMMAND = Command(
    "tune",
    tune,
    options(
        KERNELS,
        Option("--device", "names of gpusim devices, or files (h200)", "A,B,...", DEFAULT_DEVICE),
        Option("-n", "numbers of elements (2^24, or the launch's)", "2^20,2^24"),
        Option("--block", "threads per block: 64..1024, or 8x8,16x16", "64,128,..."),
        Option("--waves", "grids by their number of full waves, for kernels of any grid", "1..8"),
        Option("--coarse", "coarsening factors, for kernels of the catalogue", "1..32"),
        Option("--tune", "values of a parameter of your own; may be repeated", "NAME=8,16", None,
               True),
        Option("--max-registers", "most registers of a thread", "N"),
        Option("--max-shared", "most bytes of shared memory of a block", "BYTES"),
        Option("--top", "candidates shown of each launch (8)", "N"),
        Option("--out", "all candidates: a file that ends in .csv or .json", "FILE"),
        Option("--overwrite", "replace the contents of --out"),
        DISTRIBUTION,
        "--l2 --set --op --dtype",
        OWN,
        "--code --step-limit --json",
    ),
    (
        """examples:
  gpusim tune reduce7 -n 2^24
  gpusim tune reduce3 reduce6 --device h200,k40m --block 64..1024
  gpusim tune gemm.cu:gemm --tune TILE=8,16,32 --block TILExTILE \\
      --grid 'ceil(n/TILE)xceil(n/TILE)' -n 1024 \\
      --arg 'float32[n,n]' --arg 'float32[n,n]' --arg 'float32[n,n]' --arg n
  gpusim tune 'sum.cu:sum<BLOCK>' --tune BLOCK=64..1024 --block BLOCK --waves 1..8 \\
      --arg 'float32[n]' --arg 'float32[1]' --arg n --max-registers 64""",
        """lists: 64..1024 is 64 and twice that, up to 1024""",
    ),
)  # fmt: skip
