"""Programs of numba-cuda with one defect each, and without it: NAME 1, NAME 0."""

import sys

import numpy as np
from numba import cuda

N = 1000
name, is_bad = sys.argv[1], sys.argv[2] == "1"


@cuda.jit
def fill(x, value):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = value


@cuda.jit
def add_one(y, x):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] + 1


x, y = (cuda.to_device(np.zeros(N, np.int32)) for _ in range(2))
one, two = cuda.stream(), cuda.stream()
if name == "stream-race":
    event = cuda.event()
    fill[8, 128, one](x, 1)
    event.record(one)
    if not is_bad:
        event.wait(two)
    add_one[8, 128, two](y, x)
elif name == "uninitialised":
    z = cuda.device_array(N, np.int32)
    if not is_bad:
        fill[8, 128](z, 1)
    add_one[8, 128](y, z)
elif name == "uninitialised-copy":
    z = cuda.device_array(N, np.int32)
    if not is_bad:
        fill[8, 128](z, 1)
    z.copy_to_host()
elif name == "host-race":
    managed = cuda.managed_array(N, np.int32)
    fill[8, 128](managed, 1)
    if not is_bad:
        cuda.synchronize()
    print(managed.sum())
elif name == "pinned-race":
    pinned = cuda.pinned_array(N, np.int32)
    pinned[:] = 1
    copied = cuda.to_device(pinned, stream=one)
    if not is_bad:
        one.synchronize()
    pinned[0] = 7
cuda.synchronize()
