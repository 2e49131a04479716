"""What a guard holds is what was written last, whatever groups of warps run together."""

import numpy as np

import gpusim
from gpusim.launch.grid import ComputeCapability, Launch

# The predicates are all in use, so that they are packed into registers and written again.
SCAN = """
__global__ void scan(long long blocks, long long *out, const long long *in)
{
    __shared__ long long temp[256];
    for (long long b = blockIdx.x; b < blocks; b += gridDim.x) {
        int t = threadIdx.x, offset = 1;
        temp[2 * t] = in[b * 256 + 2 * t];
        temp[2 * t + 1] = in[b * 256 + 2 * t + 1];
        for (int d = 128; d > 0; d >>= 1, offset *= 2) {
            __syncthreads();
            if (t < d) temp[offset * (2 * t + 2) - 1] += temp[offset * (2 * t + 1) - 1];
        }
        if (t == 0) temp[255] = 0;
        for (int d = 1; d < 256; d *= 2) {
            offset >>= 1;
            __syncthreads();
            if (t < d) {
                int low = offset * (2 * t + 1) - 1, high = offset * (2 * t + 2) - 1;
                long long held = temp[low];
                temp[low] = temp[high];
                temp[high] += held;
            }
        }
        __syncthreads();
        out[b * 256 + 2 * t] = temp[2 * t];
        out[b * 256 + 2 * t + 1] = temp[2 * t + 1];
    }
}
"""


def test_predicates_written_where_other_blocks_have_left_are_those_read() -> None:
    """A predicate with a value before the kernel's first instruction is a register as others."""
    values = np.arange(256) % 7
    out = np.zeros(256, np.int64)
    gpusim.cuda_source(SCAN)["scan"][2, 128](1, out, values)
    assert (out == np.cumsum(values) - values).all()


def test_no_instruction_writes_a_constant() -> None:
    """Constants are never live: the machine would drop what is written to them."""
    scan = gpusim.cuda_source(SCAN)["scan"]
    out = np.zeros(256, np.int64)
    launch = Launch.of(2, 128)
    program = scan.prepare(launch, (1, out, out), ComputeCapability(9, 0)).program
    written = {register for row in program.instructions for register in row.dst}
    assert written.isdisjoint(program.immediates)
    assert not written.isdisjoint(program.initial)
