"""Programs of several files, and of files that only say where the rest is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from driver.host import needs_compilers

from gpusim.cli.app import main
from gpusim.driver import builds, nvcc
from gpusim.errors import InputError

MAIN = """
#include <cstdio>
#include <omp.h>
#include "../include/sums.h"
int main() {
    std::printf("%d of %d threads\\n", doubled(threads()), omp_get_max_threads());
    return 0;
}
"""
SUMS = """
#include "sums.h"
__global__ void twice(int *x) { *x *= 2; }
int doubled(int given) {
    int *x;
    cudaMallocManaged(&x, sizeof(int));
    *x = given;
    twice<<<1, 1>>>(x);
    cudaDeviceSynchronize();
    return *x;
}
"""
THREADS = """
#include "../include/sums.h"
int threads() { return 21; }
"""
OTHER = "int threads() { return 5; } int main() { return threads(); }"


def has_nvcc() -> bool:
    try:
        return nvcc.compiler().is_file()
    except InputError:
        return False


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    for name, text in {
        "src/main.cu": MAIN,
        "src/threads.cpp": THREADS,
        "src/another_main.cu": OTHER,
        "include/sums.h": "int threads();\nint doubled(int given);\n",
        "include/sums.cu": SUMS,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.slow
@needs_compilers
@pytest.mark.skipif(not has_nvcc(), reason=f"needs nvcc: {nvcc.INSTALL}")
def test_what_the_linker_misses_is_taken_from_the_files_around_and_kept(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["run", "-I", str(project / "include"), str(project / "src/main.cu")]
    assert main(command) == 0
    printed = capfd.readouterr()
    assert printed.out == "42 of 3 threads\n"
    assert "threads.cpp" in printed.err
    assert "sums.cu" in printed.err
    assert "another_main" not in printed.err

    linked = dates(project)
    assert main(command) == 0
    assert capfd.readouterr().out == "42 of 3 threads\n"
    assert dates(project) == linked


def dates(project: Path) -> dict[Path, int]:
    """Return when each program in the cache was linked."""
    return {one: one.stat().st_mtime_ns for one in (project.parent / "cache").rglob("programs/*")}


MAKEFILE = """
app: threads.o sums.o main.o
\tg++ -fopenmp -o app main.o threads.o sums.o -lcudart && ./app
sums.o: ../include/sums.cu
\tnvcc -arch=sm_60 -O2 -c -o sums.o ../include/sums.cu
%.o: %.cu
\tnvcc -Xcompiler -fopenmp -I../include -c $<
%.o: %.cpp
\tg++ -include cuda_runtime.h -c $<
"""


@pytest.mark.slow
@needs_compilers
@pytest.mark.skipif(not has_nvcc() or shutil.which("make") is None, reason="needs nvcc and make")
def test_a_makefile_compiles_with_nvcc_and_the_compiler_of_cpp(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "src" / "Makefile").write_text(MAKEFILE)
    assert main(["run", "--", "make", "-C", str(project / "src")]) == 0
    assert "42 of 3 threads\n" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("text", "name", "is_defined"),
    [
        ("float sum(const float *x, int n) {\n", "sum", True),
        ("float sum(const float *x, int n);\nint f() { return 0; }", "sum", False),
        ("int Class::get(int x) const noexcept {", "get", True),
        ("void f() { sum(x, 1); }", "sum", False),
        ("__device__ int table[4] = {1};", "table", True),
        ("extern __device__ int table[4];", "table", False),
    ],
)
def test_a_definition_is_told_from_a_use(text: str, name: str, is_defined: bool) -> None:
    assert builds._defines(text, name) == is_defined


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a.cu:1:10: fatal error: cublas_v2.h: No such file", "uses cublas, one of NVIDIA's"),
        ("a.cu:1:10: fatal error: curand_kernel.h: No such file", "pip install nvidia-curand"),
        (
            "nvlink error   : Undefined reference to '__cudaCDP2Memset3DAsync' in 'a.o'",
            "not this function of the device runtime",
        ),
        ("(.text+0x17): undefined reference to `main'", "a.cu has no main function"),
        ("ld.lld: error: undefined symbol: main", "gpusim trace a.cu:KERNEL"),
        ("a.cu(3): error: expected a ;", "nvcc does not compile it:\na.cu(3): error"),
    ],
)
def test_a_program_that_does_not_compile_is_explained(line: str, words: str) -> None:
    assert words in builds._explained(["In file included from x", line], ["a.cu"])


@pytest.mark.skipif(not has_nvcc(), reason=f"needs nvcc: {nvcc.INSTALL}")
def test_code_for_hopper_alone_compiles_to_a_program_and_to_a_cubin(tmp_path: Path) -> None:
    """A cubin is for one architecture, and an instruction of Hopper not for compute_90."""
    file = tmp_path / "products.cu"
    file.write_text('__global__ void k() { asm("wgmma.fence.sync.aligned;"); }\nint main() {}\n')
    for options in (["-cubin"], ["-ptx"], []):
        given = [*options, str(file), "-o", str(tmp_path / "made")]
        command = [str(nvcc.compiler()), *nvcc.arguments(given, "sm_90a")]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
