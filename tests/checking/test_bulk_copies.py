"""Bulk copies in a check: what is on its way, who learns of its end, fences for the engine."""

from __future__ import annotations

import numpy as np
import pytest
from checking.planted_bodies import PlantedBodies

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
HEAD = """
typedef unsigned long long u64;
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
#define LOAD(i) { \\
    asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], 256;}" \\
                 :: "r"(at(&bar)) : "memory"); \\
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" \\
                 " [%0], [%1], 256, [%2];" :: "r"(at(s)), "l"(x + 64 * (i)), "r"(at(&bar)) \\
                 : "memory"); }
__device__ void awaited(u64 *b, int parity) {
    asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;"
                 "@p bra D; bra L; D:}" :: "r"(at(b)), "r"(parity) : "memory");
}
#define WAIT(i) awaited(&bar, i)
#define SAVE { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" \\
                            :: "l"(out), "r"(at(s)) : "memory"); \\
               asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
#define SAVED asm volatile("cp.async.bulk.wait_group 0;" ::: "memory")
#define FENCE asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define SYNC __syncthreads()
#define KERNEL(name, ...) extern "C" __global__ void name(const int *x, int *out) { \\
    __shared__ alignas(16) int s[64]; \\
    __shared__ u64 bar; \\
    int t = threadIdx.x; \\
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at(&bar)) : "memory"); \\
    SYNC; \\
    __VA_ARGS__ }
"""
# Bodies by what is wrong with them.
BODIES = {
    "": (
        "if (t == 0) LOAD(0) WAIT(0); out[t] = s[t];",
        "if (t == 0) { LOAD(0) WAIT(0); } SYNC; out[t] = s[63 - t];",
        "if (t == 0) LOAD(0) WAIT(0); int v = s[63 - t]; SYNC; if (t == 0) LOAD(1) WAIT(1);"
        "out[t] = v + s[t];",
        "if (t == 0) LOAD(0) WAIT(0); s[t] = 2 * s[t]; FENCE; SYNC; if (t == 0) { SAVE SAVED; }",
        "s[t] = t; SYNC; FENCE; if (t == 0) { SAVE SAVED; }",
        "s[t] = t; FENCE; SYNC; if (t == 0) { SAVE SAVED; } SYNC; s[t] = 0; out[64 + t] = s[t];",
        "if (t == 0) { LOAD(0) WAIT(0); SAVE SAVED; }",
    ),
    "copy-race": (
        "if (t == 0) LOAD(0) SYNC; out[t] = s[t]; WAIT(0);",
        "if (t == 0) LOAD(0) SYNC; s[t] = 1; WAIT(0); out[t] = s[t];",
        "s[t] = t; FENCE; SYNC; if (t == 0) { SAVE } SYNC; s[t] = 0; if (t == 0) SAVED;",
        "if (t == 0) LOAD(0) WAIT(0); int v = s[t]; SYNC; if (t == 0) LOAD(1) WAIT(0);"
        "out[t] = v + s[t];",
        "if (t < 32) { if (t == 0) LOAD(0) WAIT(0); } out[t] = *(volatile int *)&s[t];",
    ),
    "shared-race": (
        "if (t == 0) LOAD(0) WAIT(0); int v = s[63 - t]; if (t == 0) LOAD(1) WAIT(1);"
        "out[t] = v + s[t];",
    ),
    "bulk-group": (
        "s[t] = t; FENCE; SYNC; if (t == 0) { SAVE }",
        's[t] = t; FENCE; SYNC; if (t == 0) { asm volatile("cp.async.bulk.global.shared::cta'
        '.bulk_group [%0], [%1], 256;" :: "l"(out), "r"(at(s)) : "memory"); SAVED; }',
    ),
    "no-progress": (
        'if (t == 0) { asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 64;" '
        ':: "r"(at(&bar)) : "memory"); LOAD(0) } WAIT(0); out[t] = s[t];',
    ),
    "proxy-fence": ("s[t] = t; SYNC; if (t == 0) { SAVE SAVED; }",),
}
PLANTED = PlantedBodies(HEAD, BODIES)


@pytest.mark.parametrize("number", range(len(PLANTED.kinds)))
def test_a_check_knows_when_bulk_copies_are_over(number: int) -> None:
    """Each body has one kind of error, those at first none."""
    rule, kernel = PLANTED.kinds[number][0], PLANTED.kernel(number)
    found = gpusim.check(kernel[1, 64], np.arange(128, dtype=np.int32), np.zeros(128, np.int32))
    assert {one.rule for one in found.errors} == ({rule} if rule else set()), PLANTED.kinds[number]


def test_a_check_gives_back_what_bulk_copies_have_stored() -> None:
    """The fourth body loads 64 elements, doubles them and stores them."""
    out = np.zeros(128, np.int32)
    assert not gpusim.check(PLANTED.kernel(3)[1, 64], np.arange(128, dtype=np.int32), out).errors
    assert out.tolist() == [*range(0, 128, 2), *[0] * 64]
