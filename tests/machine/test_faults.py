"""Faults: what a kernel may not do is raised, or told to who asked to go on after it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim import cuda
from gpusim.codegen.programs import prepare
from gpusim.errors import (
    BarrierError,
    KernelFault,
    MisalignedError,
    NoProgressError,
    OutOfBoundsError,
    ReadOnlyError,
)
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import Schedule, run

CC = ComputeCapability(9, 0)


def faults_of(configured: Any, *args: Any, **settings: Any) -> list[KernelFault]:
    told: list[KernelFault] = []
    run(prepare(configured, args, CC, "O0"), on_fault=told.append, **settings)
    return told


def test_lanes_outside_an_array_do_without_the_access_and_the_others_go_on() -> None:
    @cuda.jit
    def kernel(out):
        out[cuda.grid(1)] = 7

    out = np.zeros(40, np.int32)
    (fault,) = faults_of(kernel[2, 32], out)
    assert isinstance(fault, OutOfBoundsError)
    assert fault.place is not None
    assert (fault.place.block, fault.place.thread, fault.place.lanes) == (1, 8, 24)
    assert (fault.place.array, fault.place.index) == ("out", 40)
    assert out.tolist() == [7] * 40


def test_vector_accesses_that_are_not_aligned_are_left_out() -> None:
    @cuda.jit
    def kernel(out):
        cuda.store_vector(out, 4 * cuda.grid(1) + 2 * (cuda.grid(1) % 2), (1, 2, 3, 4))

    out = np.zeros(136, np.int32)
    (fault,) = faults_of(kernel[1, 32], out)
    assert isinstance(fault, MisalignedError)
    assert fault.place is not None
    assert (fault.place.thread, fault.place.index, fault.place.lanes) == (1, 6, 16)
    assert out[:8].tolist() == [1, 2, 3, 4, 0, 0, 0, 0]


def test_a_read_only_array_keeps_its_elements() -> None:
    @cuda.jit
    def kernel(out):
        out[cuda.grid(1)] = 1

    out = np.zeros(32, np.int32)
    out.flags.writeable = False
    (fault,) = faults_of(kernel[1, 32], out)
    assert isinstance(fault, ReadOnlyError)
    assert not out.any()


def test_blocks_that_stand_still_are_given_up_and_the_next_ones_run() -> None:
    @cuda.jit
    def kernel(out):
        if cuda.blockIdx.x == 0:
            if cuda.threadIdx.x % 32 < 16:
                cuda.syncwarp()
            else:
                cuda.syncthreads()
        out[cuda.blockIdx.x] = 1

    out = np.zeros(2, np.int32)
    (fault,) = faults_of(kernel[2, 32], out, schedule=Schedule(chunk=1))
    assert isinstance(fault, BarrierError)
    assert fault.place is not None
    assert fault.place.block == 0
    assert out.tolist() == [0, 1]


def test_blocks_without_end_are_given_up_at_the_step_limit() -> None:
    @cuda.jit
    def kernel(out):
        while cuda.blockIdx.x == 0:
            cuda.atomic.add(out, 0, 1)
        out[1] = 1

    out = np.zeros(2, np.int32)
    (fault,) = faults_of(kernel[2, 32], out, schedule=Schedule(chunk=1), step_limit=10_000)
    assert isinstance(fault, NoProgressError)
    assert out[1] == 1
