"""Words of constant bank 0 that the driver sets: as without clusters, or refused."""

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels
from gpusim.sass.compiler import Options
from gpusim.sass.decoding import UnknownFormError
from gpusim.sass.kernels import CudaSource

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

REGISTERS = [
    "dynamic_smem_size", "total_smem_size", "clusterid.x", "clusterid.y", "nclusterid.x",
    "nclusterid.y", "cluster_ctaid.x", "cluster_ctaid.y", "cluster_nctaid.x", "cluster_nctaid.z",
    "cluster_ctarank", "cluster_nctarank", "aggr_smem_size", "reserved_smem_offset_begin",
    "reserved_smem_offset_end", "reserved_smem_offset_cap",
]  # fmt: skip
UNKNOWN = ["envreg3", "envreg4"]


def kernel(register: str) -> str:
    name = register.replace(".", "_")
    return f"""
__global__ void {name}(unsigned *out) {{
  unsigned value;
  asm volatile("mov.u32 %0, %%{register};" : "=r"(value));
  out[blockIdx.x + gridDim.x * blockIdx.y] = value;
}}
"""


def read(text: str, register: str, shared: int = 0) -> list[int]:
    out = np.full(6, 99, np.uint32)
    gpusim.cuda_source(text)[register.replace(".", "_")][(3, 2), 1, 0, shared](out)
    return out.tolist()


def test_a_block_without_a_cluster_is_a_cluster_of_its_own() -> None:
    text = "".join(map(kernel, REGISTERS))
    found = {register: read(text, register, 300) for register in REGISTERS}
    assert found == {
        "dynamic_smem_size": [300] * 6,
        "total_smem_size": [384] * 6,
        "clusterid.x": [0, 1, 2, 0, 1, 2],
        "clusterid.y": [0, 0, 0, 1, 1, 1],
        "nclusterid.x": [3] * 6,
        "nclusterid.y": [2] * 6,
        "cluster_ctaid.x": [0] * 6,
        "cluster_ctaid.y": [0] * 6,
        "cluster_nctaid.x": [1] * 6,
        "cluster_nctaid.z": [1] * 6,
        "cluster_ctarank": [0] * 6,
        "cluster_nctarank": [1] * 6,
        "aggr_smem_size": [1324] * 6,
        "reserved_smem_offset_begin": [0] * 6,
        "reserved_smem_offset_end": [288] * 6,
        "reserved_smem_offset_cap": [1024] * 6,
    }


@pytest.mark.parametrize("register", UNKNOWN)
def test_a_word_that_nobody_sets_is_refused(register: str) -> None:
    with pytest.raises(UnknownFormError, match=r"line \d+: the driver's word at c\[0x0\]"):
        read("".join(map(kernel, UNKNOWN)), register)


SPACES = """
struct Four { int a[4]; };
__constant__ int table[4];
__global__ void spaces(int *out, const __grid_constant__ Four four) {
    __shared__ int s;
    int own[2] = {1, 2}, t = threadIdx.x;
    const void *places[] = {&s, &own[t & 1], &table[1], &four.a[0], &four.a[3], out};
    for (int k = 0; k < 6; k++) out[k] = __isGridConstant(places[k]);
}
"""


@pytest.mark.parametrize("device", ["h200", "b200"])
def test_unoptimised_code_knows_where_the_parameters_end(device: str) -> None:
    """Of six addresses two lie in the parameters: code of nvcc -G compares with both ends."""
    out = np.full(6, 99, np.int32)
    kernel = CudaSource(SPACES, "source.cu", Options(debug=True))["spaces"]
    assert gpusim.check(kernel[1, 1], out, 5, 6, 7, 8, device=device).errors == []
    assert out.tolist() == [0, 0, 0, 1, 1, 0]


@pytest.mark.parametrize("device", ["t4", "rtx3080"])
def test_a_word_at_a_place_in_a_register_is_no_parameter(device: str) -> None:
    """Before 9.0 this code reads one half of the address only: it says yes to some others, too."""
    out = np.full(6, 99, np.int32)
    kernel = CudaSource(SPACES, "source.cu", Options(debug=True))["spaces"]
    assert gpusim.check(kernel[1, 1], out, 5, 6, 7, 8, device=device).errors == []
    assert out[[0, 1, 3, 4]].tolist() == [0, 0, 1, 1]
