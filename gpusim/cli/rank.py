"""`gpusim rank`: kernels in order of their time on a GPU, and why each is faster."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from gpusim.cli.code_files import CODE
from gpusim.cli.options import (
    BLOCK,
    DATA_TYPE,
    JSON,
    OPERATION,
    STEP_LIMIT,
    Command,
    Option,
    print_json,
    print_lines,
)
from gpusim.cli.own_kernels import OWN
from gpusim.cli.progress import Bar
from gpusim.cli.timing import (
    DEFAULT_SIZE,
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

if TYPE_CHECKING:
    from gpusim.catalogue import Request
    from gpusim.cli.own_requests import OwnRequest


def rank(chosen: Namespace) -> int:
    """Order kernels by their time on a GPU, with each step's reason.

    The default is reduce1 to reduce7 with the corrected forms of the defective ones. A kernel that
    cannot run as requested is listed with the reason. Kernels of your own are named by their files,
    and share grid and arguments.
    """
    passes, l2 = how(chosen)
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
    from gpusim.reports.ranking import ranking_document, ranking_report

    if chosen.json:
        print_json(ranking_document(ranking))
    else:
        print_lines(lambda width: ranking_report(ranking, passes, width))
    return 0


def _request(name: str, chosen: Namespace) -> Request | OwnRequest:
    """Return the request for a kernel; InputError if there is none of this name."""
    from gpusim.cli import inputs
    from gpusim.cli.own_requests import OwnRequest, request_of

    n, block, request = inputs.count(chosen.n), chosen.block, request_of(name, chosen)
    if block is None or isinstance(request, OwnRequest):
        return request.sized(n, block)
    return request.sized(n, inputs.count(block, "the block"))


COMMAND = Command(
    "rank",
    rank,
    (
        Option(
            "kernels",
            "names of gpusim list (reduce1 to reduce7), FILE.py:FUNCTION or FILE.cu:KERNEL",
            "KERNEL",
            arity="*",
        ),
        DEVICE,
        Option("-n", "number of elements: 4096, 2^20, 1e6 (2^26)", "N", DEFAULT_SIZE),
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
