"""`gpusim rank`: kernels in order of their time on a GPU, and why each is faster."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpusim.cli.launches import by_its_rule
from gpusim.cli.options import (
    KERNELS_OR_SERIES,
    OWN,
    Command,
    Option,
    options,
    print_document,
    print_lines,
)
from gpusim.cli.progress import Bar
from gpusim.cli.project import with_launch
from gpusim.cli.timing import SERIES, device_of, how, with_corrections

if TYPE_CHECKING:
    from gpusim.catalogue import Request
    from gpusim.cli.own_requests import OwnRequest
    from gpusim.prediction.rankings import Ranking
    from gpusim.prediction.sweeps.jobs import Difference, Job


def rank(chosen: Namespace) -> int:
    """Order kernels by their time on a GPU, with each step's reason.

    The default is reduce1 to reduce7 with the corrected forms of the defective ones. A kernel that
    cannot run as requested is listed with the reason. Kernels of your own are named by their files,
    and share grid and arguments. Not ranked, with the reason: kernels with a known
    defect, with a fault or race, and with other results than the first of yours.
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
    from gpusim.catalogue import Request
    from gpusim.cli.own_requests import OwnRequest
    from gpusim.cli.selection import step_limit
    from gpusim.prediction.rankings import rank as ranking_of

    names = list(dict.fromkeys(chosen.kernels)) or with_corrections(SERIES)
    limit, requests = step_limit(chosen), [_request(name, chosen) for name in names]
    with Bar(len(requests), "kernels") as bar:
        bar.start()
        ranking = ranking_of(
            requests, device=device, l2=l2, code=chosen.code, step_limit=limit, progress=bar.advance
        )
    of_rules = {one.kernel: one for one in requests if isinstance(one, Request)}

    def described(job: Job) -> Job:
        rule = of_rules.get(job.name)
        return job if rule is None else replace(job, description=by_its_rule(rule, chosen))

    ranking = ranking.with_jobs(described)
    own = [one for one in requests if isinstance(one, OwnRequest)]
    found = _differences(own, chosen) if len(own) > 1 else {}
    wrong = {name: one.text for name, one in found.items() if one.is_wrong}
    remarks = [
        f"the results of {name} are not compared: {one.text}"
        for name, one in found.items()
        if not one.is_wrong
    ]
    ranking = replace(ranking, measured=_measured(ranking, chosen))
    return ranking.without(wrong) if wrong else ranking, [*_families(requests), *remarks]


def _measured(ranking: Ranking, chosen: Namespace) -> dict[str, float]:
    """Return GB/s of the same launches on the GPU itself, by kernel, as far as they are known."""
    from gpusim.cli.validation import measured_gbps

    passes, l2 = how(chosen)
    is_other = chosen.without or chosen.changed or (passes, l2) != ("one", "cold")
    found = dict[str, float]()
    for one in () if is_other else ranking.forecasts:
        setup = one.job.launches[0].setup
        if setup is not None and setup.operation == "sum":
            by_size = measured_gbps(setup.entry.name, one.device.id, setup.block, setup.dtype.name)
            found.update((one.job.name, rate) for n, rate in by_size if n == setup.n)
    return found


def _differences(own: Sequence[OwnRequest], chosen: Namespace) -> dict[str, Difference]:
    """Return the kernels' differences from the first, in small launches."""
    pairs = ((one.kernel, one.difference(own[0], chosen.device, chosen.code)) for one in own)
    return {name: found for name, found in pairs if found is not None}


def _families(requests: Sequence[Request | OwnRequest]) -> Iterator[str]:
    """Yield a remark about kernels of several families, or of files beside the catalogue."""
    from gpusim.catalogue import Request

    families = {one.entry.family.name for one in requests if isinstance(one, Request)}
    is_own = any(not isinstance(one, Request) for one in requests)
    if len(families) + is_own > 1:
        kinds = [*sorted(families), *["kernels of your own"] * is_own]
        yield f"these kernels do different work: {' and '.join(kinds)}"


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


COMMAND = Command(
    "rank",
    rank,
    options(
        KERNELS_OR_SERIES,
        "--device",
        Option("-n", "number of elements: 4096, 2^20 (2^24, or the launch's)", "N"),
        "--block --passes --l2 --without --set --op --dtype",
        OWN,
        "--code --step-limit --json",
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
