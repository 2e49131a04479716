"""Programs of other packages run as they are; extras `programs`, `pycuda`, `triton`."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpusim.cli.app import main
from gpusim.driver.images import cubin_of, members
from gpusim.driver.nvcc import compiler
from gpusim.launch.grid import ComputeCapability
from gpusim.sass import wheels

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="Linux alone")]

NUMBA = """
import numpy as np
from numba import cuda, float32
@cuda.jit
def reduce(x, out):
    s = cuda.shared.array(128, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    s[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    k = 64
    while k > 0:
        if t < k:
            s[t] += s[t + k]
        cuda.syncthreads()
        k //= 2
    if t == 0:
        cuda.atomic.add(out, 0, s[0])
x = np.arange(1000, dtype=np.float32)
out = cuda.to_device(np.zeros(1, np.float32))
reduce[8, 128](cuda.to_device(x), out)
print(out.copy_to_host()[0] == x.sum())
"""
CUDA_CORE = """
import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, launch
from cuda.core import Program, ProgramOptions
code = 'extern "C" __global__ void twice(float* x, int n) { x[threadIdx.x] *= 2; }'
device = Device(); device.set_current(); stream = device.create_stream()
module = Program(code, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")
memory = LegacyPinnedMemoryResource().allocate(400)
held = np.from_dlpack(memory).view(np.float32); held[:] = np.arange(100)
launch(stream, LaunchConfig(grid=1, block=100), module.get_kernel("twice"), memory, np.int32(100))
stream.sync()
print(held[99] == 198)
"""
PYCUDA = """
import numpy as np
import pycuda.autoinit
import pycuda.driver as driver
import pycuda.gpuarray as gpuarray
from pycuda.compiler import SourceModule
from pycuda.elementwise import ElementwiseKernel
from pycuda.scan import InclusiveScanKernel
code = "__global__ void twice(int *x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }"
x = np.arange(100, dtype=np.int32)
SourceModule(code).get_function("twice")(driver.InOut(x), np.int32(50), block=(128, 1, 1))
there = gpuarray.to_gpu(x)
ElementwiseKernel("int *x, int a", "x[i] += a", "add")(there, np.int32(1))
total = int(gpuarray.sum(there).get())
InclusiveScanKernel(np.int32, "a+b")(there)
expected = np.where(np.arange(100) < 50, 2, 1) * np.arange(100) + 1
print(total == expected.sum() and (there.get() == np.cumsum(expected)).all())
"""
# Triton's own launcher; and the code that it has compiled, launched by cuda.core.
TRITON = """
import numpy as np
import triton
import triton.language as tl
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
class Held:
    def __init__(self, values):
        self.memory, self.dtype = LegacyPinnedMemoryResource().allocate(values.nbytes), "float32"
        self.values = np.from_dlpack(self.memory).view(np.float32).reshape(values.shape)
        self.values[:] = values
    def data_ptr(self):
        return int(self.memory.handle)
@triton.jit
def softmax(x, out, n, width: tl.constexpr):
    i = tl.arange(0, width)
    place = tl.program_id(0) * n + i
    v = tl.load(x + place, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + place, e / tl.sum(e, axis=0), mask=i < n)
device = Device(); device.set_current(); stream = device.default_stream
values = np.random.default_rng(1).normal(size=(7, 200)).astype(np.float32)
x, one, other = Held(values), Held(0 * values), Held(0 * values)
made = softmax[7,](x, one, 200, width=256)
kernel = ObjectCode.from_cubin(made.asm["cubin"]).get_kernel("softmax")
size = LaunchConfig(grid=7, block=128, shmem_size=made.metadata.shared)
scratch = [np.uint64(0)] * (kernel.num_arguments - 3)
launch(stream, size, kernel, x.memory, other.memory, np.int32(200), *scratch)
stream.sync()
e = np.exp(values - values.max(1, keepdims=True))
print(np.allclose(one.values, e / e.sum(1, keepdims=True)) and (one.values == other.values).all())
"""
TINYGRAD = """
import os
os.environ["DEV"] = "CUDA"
from tinygrad import Tensor
a = Tensor([[1.0, 2.0], [3.0, 4.0]])
print((a @ a + 1).numpy().tolist() == [[8, 11], [16, 23]])
"""
CUDA = """
#include <cstdio>
#include <vector>
__constant__ float factor;
template <typename T> __global__ void scale(T *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
int main(int count, char **words) {
  int n = 1000; std::vector<float> h(n, 2); float f = atof(words[1]), *d;
  cudaMalloc(&d, n * 4); cudaMemcpyToSymbol(factor, &f, 4);
  cudaMemcpy(d, h.data(), n * 4, cudaMemcpyHostToDevice);
  scale<<<8, 128>>>(d, n);
  cudaMemcpy(h.data(), d, n * 4, cudaMemcpyDeviceToHost);
  cudaDeviceProp p; cudaGetDeviceProperties(&p, 0);
  printf("%s %g %s\\n", p.name, h[n - 1], cudaGetErrorString(cudaGetLastError()));
  return count == 2 ? 3 : 0;
}
"""


EARLIER = """
#include <helper_cuda.h>
#include <helper_functions.h>
__global__ void add(int *x) { x[threadIdx.x] += 1; }
int main(int count, char **words) {
  findCudaDevice(count, (const char **)words);
  cudaDeviceProp p; checkCudaErrors(cudaGetDeviceProperties(&p, 0));
  int *x; checkCudaErrors(cudaMallocManaged(&x, 128));
  for (int i = 0; i < 32; i++) x[i] = getCmdLineArgumentInt(count, (const char **)words, "n");
  checkCudaErrors(cudaMemPrefetchAsync(x, 128, 0));
  add<<<1, 32>>>(x);
  checkCudaErrors(cudaThreadSynchronize());
  printf("%d %d\\n", p.clockRate > 0, x[31]);
}
"""


def find(program: str) -> bool:
    """Return whether a program of the toolkit is installed."""
    return any((folder / program).is_file() for folder in wheels.folders("bin"))


def needs(package: str, extra: str = "programs") -> pytest.MarkDecorator:
    """Skip a test without a package."""
    found = importlib.util.find_spec(package.partition(".")[0])
    there = found is not None and importlib.util.find_spec(package) is not None
    return pytest.mark.skipif(not there, reason=f"needs {package}: pip install '.[{extra}]'")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(NUMBA, marks=needs("numba_cuda"), id="numba-cuda"),
        pytest.param(CUDA_CORE, marks=needs("cuda.core"), id="cuda.core"),
        pytest.param(PYCUDA, marks=needs("pycuda", "pycuda"), id="pycuda"),
        pytest.param(TRITON, marks=needs("triton", "triton"), id="triton"),
        pytest.param(TINYGRAD, marks=needs("tinygrad"), id="tinygrad"),
    ],
)
def test_a_program_of_a_package_runs(
    text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(text)
    assert main(["run", "--", sys.executable, "-W", "ignore", str(program)]) == 0
    assert capfd.readouterr().out.splitlines() == ["True"]


@pytest.mark.skipif(not find("cuobjdump"), reason="needs cuobjdump: pip install '.[driver]'")
@pytest.mark.parametrize("mode", ["size", "speed"])
@pytest.mark.parametrize("target", ["sm_90", "compute_80"])
def test_code_that_nvcc_compresses_is_loaded(tmp_path: Path, mode: str, target: str) -> None:
    source, made = tmp_path / "a.cu", tmp_path / "a.fatbin"
    source.write_text("__global__ void twice(float *x) { x[threadIdx.x] *= 2; }")
    nvcc = [str(compiler()), f"--compress-mode={mode}", "-fatbin", f"-arch={target}"]
    subprocess.run([*nvcc, str(source), "-o", str(made)], check=True)
    assert any(one.is_compressed for one in members(made.read_bytes()))
    assert b"twice" in cubin_of(made.read_bytes(), ComputeCapability(9, 0))


needs_nvcc = pytest.mark.skipif(
    not find("nvcc"),
    reason="needs nvcc: pip install '.[driver]'",
)


@needs_nvcc
def test_programs_for_earlier_runtimes_and_with_the_samples_helpers_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.cu"
    program.write_text(EARLIER)
    assert main(["run", str(program), "--", "--n=4"]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "1 5"


@needs_nvcc
def test_a_library_of_kernels_is_refused_by_name(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.cu"
    program.write_text("#include <cusolverDn.h>\nint main() {}")
    assert main(["run", str(program)]) == 2
    assert "uses cusolver, one of NVIDIA's libraries" in capfd.readouterr().err


@needs_nvcc
def test_cuda_cpp_with_its_host_code_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.cu"
    program.write_text(CUDA)
    assert main(["run", "--device", "rtx3080", str(program), "--", "1.5"]) == 3
    assert capfd.readouterr().out.splitlines() == ["GeForce RTX 3080 3 no error"]


@needs_nvcc
def test_a_benchmark_prints_the_rates_that_are_predicted_by_hand(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    n, file, out = 1 << 22, Path(__file__).with_name("benchmark.cu"), tmp_path / "out.json"
    assert main(["predict", "--json", "--out", str(out), str(file), "--", str(n)]) == 0
    launch_gbps, copy_gbps = map(float, capfd.readouterr().out.split())
    given = ("2.0", f"float32[{n}]", f"float32[{n}]", str(n))
    arguments = [word for one in given for word in ("--arg", one)]
    by_hand = ["predict", f"{file}:saxpy", "--grid", str(n // 256), "--block", "256", "--json"]
    assert main([*by_hand, *arguments]) == 0
    time_us = json.loads(capfd.readouterr().out)["time_us"]
    assert launch_gbps == pytest.approx(12 * n / time_us / 1e3, rel=1e-3)
    assert copy_gbps == pytest.approx(63.0, rel=1e-3)
    (launch,) = json.loads(out.read_text())["launches"]
    assert launch["time_us"] == pytest.approx(time_us, rel=1e-3)


@needs("numba_cuda")
def test_numba_cudas_own_tests_pass(tmp_path: Path) -> None:
    every = os.environ.get("GPUSIM_NUMBA_EVERY", "60")  # 1 runs them all, for hours
    file, results = Path(__file__).with_name("numba_tests.py"), tmp_path / "results.json"
    main(["run", "--", sys.executable, str(file), str(results), every])
    rows = [(name, said) for name, said in json.loads(results.read_text()) if said != "skipped"]
    failed = [(name, said) for name, said in rows if said != "passed"]
    assert rows
    assert len(failed) <= 0.08 * len(rows), failed
    known = (*failing(file), "it takes more than")
    assert [one for one in failed if not any(part in " ".join(one) for part in known)] == []


def failing(file: Path) -> dict[str, str]:
    """Return the parts of names of tests that are known to fail, with reasons."""
    spec = importlib.util.spec_from_file_location("numba_tests", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.FAILING)
