"""`gpusim rank`: kernels in order of their time on a GPU, and why each is faster."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpusim.cli.code_files import CODE
from gpusim.cli.launch_options import OWN
from gpusim.cli.options import (
    BLOCK,
    DATA_TYPE,
    JSON,
    KERNELS_OR_SERIES,
    OPERATION,
    STEP_LIMIT,
    Command,
    Option,
    print_document,
    print_lines,
)
from gpusim.cli.progress import Bar
from gpusim.cli.project import with_launch
from gpusim.cli.timing import (
    DEVICE,
    L2,
    PASSES,
    SERIES,
    SET,
    WITHOUT,
    device_of,
    how,
    with_corrections,
)
from gpusim.errors import GpusimError, InputError

if TYPE_CHECKING:
    from gpusim.catalogue import Request
    from gpusim.cli.outputs import Outputs
    from gpusim.cli.own_requests import OwnRequest
    from gpusim.gpu.device import Device
    from gpusim.prediction.rankings import Ranking

# Of a launch that is run for its results.
MOST_ELEMENTS, LEAST_ELEMENTS, MOST_THREADS = 4096, 64, 1 << 20


def rank(chosen: Namespace) -> int:
    """Order kernels by their time on a GPU, with each step's reason.

    The default is reduce1 to reduce7 with the corrected forms of the defective ones. A kernel that
    cannot run as requested is listed with the reason. Kernels of your own are named by their files,
    and share grid and arguments; where their results differ, a remark says so.
    """
    passes, _ = how(chosen)
    ranking, remarks = ranked(chosen)
    from gpusim.reports.ranking import ranking_document, ranking_report

    if chosen.json:
        print_document("rank", ranking_document(ranking, remarks))
    else:
        print_lines(lambda width: ranking_report(ranking, passes, width, remarks))
    return 0


def ranked(chosen: Namespace) -> tuple[Ranking, list[str]]:
    """Return the ranking, and remarks on kernels that do different work."""
    _, l2 = how(chosen)
    device = device_of(chosen.device, chosen.without, chosen.changed)
    from gpusim.cli.selection import step_limit
    from gpusim.prediction.rankings import rank as ranking_of

    names = list(dict.fromkeys(chosen.kernels)) or with_corrections(SERIES)
    limit, requests = step_limit(chosen), [_request(name, chosen) for name in names]
    with Bar(len(requests), "kernels") as bar:
        bar.start()
        ranking = ranking_of(
            requests,
            device=device,
            l2=l2,
            code=chosen.code,
            step_limit=limit,
            progress=bar.advance,
        )
    return ranking, list(_different_work(requests, device, chosen.code, limit))


def _different_work(
    requests: Sequence[Request | OwnRequest], device: Device, code: str | None, limit: int
) -> Iterator[str]:
    """Yield remarks about kernels that do not do the work of the first, by their results.

    Kernels of one's own run on few elements, random where none are given; the catalogue has
    families.
    """
    from gpusim.catalogue import Request
    from gpusim.cli.outputs import agreements
    from gpusim.cli.own_requests import OwnRequest

    own = [one for one in requests if isinstance(one, OwnRequest)]
    families = {one.entry.family.name for one in requests if isinstance(one, Request)}
    if len(families) + bool(own) > 1:
        kinds = [*sorted(families), *["kernels of your own"] * bool(own)]
        yield f"these kernels do different work: {' and '.join(kinds)}"
    results = []
    for one in own if len(own) > 1 else ():
        try:
            results.append((one.kernel, _outputs_of(one, device, code, limit)))
        except GpusimError as error:
            yield f"the results of {one.kernel} are not compared: {error}"
    for name, found in results[1:]:
        first, expected = results[0]
        wrong = [one for one in agreements(expected, found) if not one.agrees]
        if wrong:
            yield f"{name} does other work than {first}; {wrong[0]} (gpusim compare has more)"


def _outputs_of(request: OwnRequest, device: Device, code: str | None, limit: int) -> Outputs:
    """Return what a launch leaves; InputError where it has too many threads to be run for it."""
    from gpusim.cli.outputs import ran
    from gpusim.codegen.programs import prepare

    configured, values = _small(request).launch().filled()
    return ran(configured, values, prepare(configured, values, device.cc, code=code), limit)


def _request(name: str, chosen: Namespace) -> Request | OwnRequest:
    """Return the request for a kernel; InputError if there is none of this name."""
    from gpusim.cli import inputs
    from gpusim.cli.own_requests import OwnRequest, request_of

    chosen = with_launch(Namespace(**{**vars(chosen), "kernel": name}))
    n, block = None if chosen.n is None else inputs.count(chosen.n), chosen.block
    request = request_of(chosen.kernel, chosen)
    if block is None or isinstance(request, OwnRequest):
        return request.sized(n, block)
    return request.sized(n, inputs.count(block, "the block"))


def _small(request: OwnRequest) -> OwnRequest:
    """Return a launch for n elements that is quickly run: n is halved until it is."""
    n = None if request.n is None else min(request.n, MOST_ELEMENTS)
    while True:
        small = request.sized(n, request.block)
        launch = small.job().launches[0].configured.launch
        if launch.blocks * launch.threads_per_block <= MOST_THREADS:
            return small
        if n is None or n < LEAST_ELEMENTS:
            raise InputError(f"a launch has more than {MOST_THREADS:,} threads")
        n //= 2


COMMAND = Command(
    "rank",
    rank,
    (
        KERNELS_OR_SERIES,
        DEVICE,
        Option("-n", "number of elements: 4096, 2^20 (2^24, or the launch's)", "N"),
        BLOCK,
        PASSES,
        L2,
        WITHOUT,
        SET,
        OPERATION,
        DATA_TYPE,
        *OWN,
        CODE,
        STEP_LIMIT,
        JSON,
    ),
    (
        """examples:
  gpusim rank --device k40m -n 2^26 --block 1024 --passes all
  gpusim rank reduction1 reduction2 reduction3 --device "RTX 3060 Ti" -n 2^24
  gpusim rank --json
  gpusim rank kernels.cu:a kernels.cu:b mine.py:c -n 2^24 --block 256 \\
      --grid 'ceil(n/block)' --arg 'int32[n]=random' --arg 'int32[n]' --arg n""",
    ),
)
