"""Wrong kernels: defects in the catalogue, beside a GPU's results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpusim.catalogue import entries

from .records import Measurement

SHOWN_SIZE = 2**22


@dataclass(frozen=True)
class Correctness:
    """Correctness of one kernel's results on a GPU, beside the catalogue's entry.

    `shown` has a launch for each block size; `wrong` of the kernel's `launches` gave wrong results
    or faulted.
    """

    kernel: str
    defect: str | None
    fixed_by: str | None
    shown: tuple[Measurement, ...]
    launches: int
    wrong: int

    @property
    def is_as_known(self) -> bool:
        """Whether the kernel is wrong exactly if the catalogue lists a defect."""
        return bool(self.wrong) == bool(self.defect)

    @property
    def verdict(self) -> str:
        """The measured outcome, in words."""
        return f"{self.wrong} of {self.launches} launches wrong"


def correctness(times: Sequence[Measurement]) -> list[Correctness]:
    """Return every kernel with checked results, in the order of the catalogue."""
    found = []
    for entry in entries():
        looked_at = [
            one
            for one in times
            if one.kernel == entry.name and (one.fault or one.wrong is not None)
        ]
        if looked_at:
            found.append(
                Correctness(
                    kernel=entry.name,
                    defect=entry.defect,
                    fixed_by=entry.fixed_by,
                    shown=_a_block_each(looked_at, entry.dtypes[0]),
                    launches=len(looked_at),
                    wrong=sum(not one.is_right for one in looked_at),
                )
            )
    return found


def _a_block_each(times: Sequence[Measurement], dtype: str) -> tuple[Measurement, ...]:
    """Return for each block size a single cold launch, of 2^22 elements or nearest to that."""
    by_block: dict[int, Measurement] = {}
    for one in sorted(times, key=lambda t: (t.case.block, abs(t.case.n - SHOWN_SIZE))):
        if (one.case.scope, one.case.l2, one.case.dtype) == ("single", "cold", dtype):
            by_block.setdefault(one.case.block, one)
    return tuple(by_block.values())


def results(measured: Measurement) -> str:
    """Return the number of wrong results, or the fault of the launch."""
    return measured.fault or f"{measured.wrong:,} of {measured.results:,}"


def misses(found: Sequence[Correctness]) -> list[str]:
    """Return the disagreements of GPU and catalogue, each as a sentence."""
    return [
        f"{one.kernel}: {one.verdict}, and the catalogue knows "
        + ("a defect of it" if one.defect else "no defect of it")
        for one in found
        if not one.is_as_known
    ]
