"""Status codes of the driver's API (CUresult), as far as they are returned here."""

from __future__ import annotations

from gpusim.errors import (
    AssertionFault,
    BarrierError,
    KernelFault,
    MisalignedError,
    NoProgressError,
)
from gpusim.errors import OutOfBoundsError as OutOfBounds

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY = 0, 1, 2
INVALID_IMAGE, NO_BINARY, INVALID_PTX, NO_PTX_COMPILER = 200, 209, 218, 221
INVALID_HANDLE, NOT_FOUND = 400, 500
ILLEGAL_ADDRESS, LAUNCH_OUT_OF_RESOURCES, LAUNCH_TIMEOUT, ASSERT = 700, 701, 702, 710
ALREADY_REGISTERED, NOT_REGISTERED, MISALIGNED = 712, 713, 716
LAUNCH_FAILED, COOPERATIVE_TOO_LARGE, NOT_SUPPORTED, UNKNOWN = 719, 720, 801, 999
INVALID_CLUSTER_SIZE = 912

_OF_FAULTS: tuple[tuple[type[KernelFault], int], ...] = (
    (OutOfBounds, ILLEGAL_ADDRESS),
    (MisalignedError, MISALIGNED),
    (NoProgressError, LAUNCH_TIMEOUT),
    (BarrierError, LAUNCH_TIMEOUT),
    (AssertionFault, ASSERT),
)


class RefusedError(Exception):
    """A request that is answered with a status and nothing else."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def of_fault(fault: KernelFault) -> int:
    """Return CUDA's status for a context after a kernel's fault."""
    for kind, status in _OF_FAULTS:
        if isinstance(fault, kind):
            return status
    return LAUNCH_FAILED
