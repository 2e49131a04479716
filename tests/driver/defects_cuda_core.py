"""Programs of cuda.core with one defect each, and without it: NAME 1, NAME 0."""

import sys

import numpy as np
from cuda.core import (
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    launch,
)

CODE = r"""
extern "C" __global__ void fill(int* x, int value) {
  x[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
extern "C" __global__ void add_one(int* y, const int* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] + 1;
}
"""
BYTES = 4096
name, is_bad = sys.argv[1], sys.argv[2] == "1"

device = Device()
device.set_current()
one, two = device.create_stream(), device.create_stream()
program = Program(CODE, "c++", ProgramOptions(arch=f"sm_{device.arch}", lineinfo=True))
module = program.compile("cubin")
fill, add_one = module.get_kernel("fill"), module.get_kernel("add_one")
config = LaunchConfig(grid=8, block=128)
pinned = LegacyPinnedMemoryResource().allocate(BYTES)
x, y = (device.allocate(BYTES, stream=one) for _ in range(2))
one.sync()
if name == "stream-race":
    launch(one, config, fill, x, np.int32(1))
    if not is_bad:
        two.wait(one.record())
    launch(two, config, add_one, y, x)
elif name == "host-race":
    launch(one, config, fill, pinned, np.int32(1))
    if not is_bad:
        one.sync()
    print(np.from_dlpack(pinned).view(np.int32)[0])
elif name == "uninitialised":
    if not is_bad:
        launch(one, config, fill, x, np.int32(1))
    launch(one, config, add_one, y, x)
elif name == "free":
    launch(one, config, fill, x, np.int32(1))
    if not is_bad:
        two.wait(one.record())
    x.close(two)
one.sync()
two.sync()
