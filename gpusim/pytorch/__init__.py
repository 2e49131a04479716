"""PyTorch's CPU build with a simulated CUDA device, in programs that gpusim starts.

Device memory is mapped by the program: a tensor there is a CPU tensor to PyTorch, computed by the
processor, and a pointer to device memory for a kernel. A tensor's address tells its place.
Nothing in gpusim imports this package: `start/sitecustomize.py` loads it into the program's process
when the program imports torch or triton.
"""

from __future__ import annotations

import sys
from types import ModuleType

CPU_BUILD = "pip install torch --index-url https://download.pytorch.org/whl/cpu"


def imported(module: ModuleType) -> None:
    """Prepare torch or triton, just imported."""
    _PREPARE[module.__name__](module)


def _prepare_torch(torch: ModuleType) -> None:
    if torch.version.cuda is not None:
        print(
            f"gpusim: this PyTorch is built for CUDA {torch.version.cuda}, with a static runtime "
            f"that only NVIDIA's driver serves; install the CPU build: {CPU_BUILD}",
            file=sys.stderr,
        )
        return
    from . import cuda, placing, tracing

    cuda.install()
    placing.install()
    tracing.install()


def _prepare_triton(triton: ModuleType) -> None:
    from . import kernels

    kernels.install(triton)


def _prepare_inductor(module: ModuleType) -> None:
    from . import inductor

    inductor.install(module)


_PREPARE = {
    "torch": _prepare_torch,
    "triton": _prepare_triton,
    "torch._inductor.compile_fx": _prepare_inductor,
}
