"""`gpusim rank`: kernels in order of their time on a GPU, and why each is faster."""

from __future__ import annotations

from argparse import Namespace

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
from gpusim.cli.progress import Bar
from gpusim.cli.timing import (
    DEFAULT_SIZE,
    DEVICE,
    L2,
    PASSES,
    SERIES,
    WITHOUT,
    device_of,
    how,
    with_corrections,
)
from gpusim.errors import GpusimError


def rank(chosen: Namespace) -> int:
    """Order kernels by their time on a GPU, with each step's reason.

    Without names it ranks reduce1 to reduce7, and the corrected form of those that are wrong as
    published. A kernel that cannot run as asked is named with the reason.
    """
    passes, l2 = how(chosen)
    device = device_of(chosen.device, chosen.without)
    from gpusim.catalogue import Request, find
    from gpusim.cli import inputs
    from gpusim.cli.selection import step_limit
    from gpusim.prediction.jobs import Forecast, catalogue_job

    names = list(dict.fromkeys(chosen.kernels)) or with_corrections(SERIES)
    n, limit = inputs.count(chosen.n), step_limit(chosen)
    block = inputs.count(chosen.block, "the block") if chosen.block is not None else None
    kind = inputs.dtype(chosen.dtype) if chosen.dtype is not None else None
    operation = chosen.op or "sum"
    requests = [
        Request(find(name).name, n, block, operation, kind, passes=passes) for name in names
    ]
    forecasts: list[Forecast] = []
    errors: list[tuple[str, GpusimError]] = []
    with Bar(len(requests), "kernels") as bar:
        bar.start()
        for request in requests:
            try:
                job = catalogue_job(request).in_code(chosen.code)
                forecasts.append(job.on(device, l2=l2, step_limit=limit))
            except GpusimError as error:
                errors.append((request.kernel, error))
            bar.advance(request.kernel)
    if not forecasts:
        raise errors[0][1]
    from gpusim.reports.ranking import Ranking, ranking_document, ranking_report

    failures = [(name, str(error)) for name, error in errors]
    ranking = Ranking.of(forecasts, failures, passes)
    if chosen.json:
        print_json(ranking_document(ranking))
    else:
        print_lines(lambda width: ranking_report(ranking, width))
    return 0


COMMAND = Command(
    "rank",
    rank,
    (
        Option("kernels", "names of gpusim list (reduce1 to reduce7)", "KERNEL", arity="*"),
        DEVICE,
        Option("-n", "number of elements: 4096, 2^20, 1e6 (2^26)", "N", DEFAULT_SIZE),
        BLOCK,
        PASSES,
        L2,
        WITHOUT,
        OPERATION,
        DATA_TYPE,
        CODE,
        STEP_LIMIT,
        JSON,
    ),
    (
        """examples:
  gpusim rank --device k40m -n 2^26 --block 1024 --passes all
  gpusim rank reduction1 reduction2 reduction3 --device "RTX 3060 Ti" -n 2^24
  gpusim rank --json""",
    ),
)
