"""Headers used by host code only: the compiler gets them without their functions.

Files have `main` and device code side by side, and include for both; host code is not compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

C = """
    assert.h complex.h ctype.h direct.h dirent.h dlfcn.h errno.h fcntl.h getopt.h inttypes.h io.h
    libgen.h locale.h malloc.h memory.h omp.h poll.h process.h pthread.h sched.h semaphore.h
    signal.h stdarg.h stdbool.h stdio.h stdlib.h string.h strings.h termios.h time.h unistd.h
    wchar.h sys/mman.h sys/stat.h sys/time.h sys/types.h windows.h
"""
CPP = """
    bits/stdc++.h algorithm any array atomic bitset cctype cerrno charconv chrono cinttypes clocale
    codecvt complex condition_variable csignal cstdarg cstdio cstdlib cstring ctime cwchar deque
    exception execution filesystem format forward_list fstream functional future initializer_list
    iomanip ios iosfwd iostream istream iterator list locale map memory memory_resource mutex new
    numeric optional ostream queue random ranges ratio regex set shared_mutex span sstream stack
    stdexcept streambuf string string_view system_error thread tuple typeindex typeinfo
    unordered_map unordered_set utility valarray variant vector
"""
# Libraries that the host calls, and headers of CUDA's samples for their host code.
LIBRARIES = """
    cublas.h cublasLt.h cublas_v2.h cudaEGL.h cudaGL.h cudaProfiler.h cudaTypedefs.h
    cuda_egl_interop.h cuda_gl_interop.h cuda_profiler_api.h cudnn.h cupti.h curand.h cusolverDn.h
    cusparse.h cusparse_v2.h exception.h helper_cuda.h helper_functions.h helper_image.h
    helper_string.h helper_timer.h mpi.h nccl.h nvToolsExt.h nvml.h nvrtc.h nvtx3/nvToolsExt.h
    timer.h
"""
# Frameworks whose headers kernels are built with: their host functions are cut out.
FRAMEWORKS = """
    ATen/ATen.h ATen/Dispatch.h ATen/cuda/CUDAContext.h ATen/cuda/CUDAUtils.h ATen/cuda/Exceptions.h
    c10/cuda/CUDAException.h c10/cuda/CUDAGuard.h c10/cuda/CUDAStream.h c10/macros/Macros.h
    c10/util/BFloat16.h c10/util/Exception.h c10/util/Half.h c10/util/Optional.h
    pybind11/numpy.h pybind11/pybind11.h pybind11/stl.h pycuda-complex.hpp pycuda-helpers.hpp
    torch/all.h torch/extension.h torch/library.h torch/script.h torch/torch.h torch/types.h
"""
# Types in declarations of host functions, which stay where a header is compiled as it is.
_FILE = "typedef struct _IO_FILE FILE;\n"
TYPES = {"stdio.h": _FILE, "cstdio": f"{_FILE}namespace std {{ using ::FILE; }}\n"}
HOST_HEADERS = (*C.split(), *CPP.split(), *LIBRARIES.split(), *FRAMEWORKS.split())


# Some of these are included by headers for kernels: `curand_kernel.h` takes types from there.
_OF_DEVICES_TOO = frozenset({"curand.h"})


def host_headers(folders: Sequence[str], headers: Sequence[Path] = ()) -> dict[str, str]:
    """Return the host headers by name, except headers in the user's own folders.

    `headers` are CUDA's: declarations for kernels are taken from there.
    """
    own = [Path(folder) for folder in folders]
    return {
        name: TYPES.get(name, "")
        for name in HOST_HEADERS
        if not any(
            (folder / name).is_file()
            for folder in (*own, *(headers if name in _OF_DEVICES_TOO else ()))
        )
    }
