"""Pairs of kernels with asynchronous hardware: one is wrong, its twin right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.launch.tensor_maps import TensorMap
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
BULK = Path(__file__).parents[2] / "validate" / "bulk"
HEAD = """
#include "cluster.cuh"
#define SYNC __syncthreads()
#define T0 if (t == 0)
#define GET(i, n) { expect(&full[n], 256); load(s[n], x + 64 * (i), 256, &full[n]); }
#define BOX(stage) asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile" \\
    ".mbarrier::complete_tx::bytes [%0], [%1, {0, 0}], [%2];" :: "r"(at(s[stage])), "l"(&map), \\
    "r"(at(&full[stage])) : "memory")
#define BOX_OUT asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group" \\
    " [%0, {0, 0}], [%1];" :: "l"(&map), "r"(at(s[0])) : "memory")
#define ADD_OUT asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32" \\
    " [%0], [%1], 256;" :: "l"(out), "r"(at(s[0])) : "memory")
#define STORE_AT(a, v) asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(a), "r"(v) : "memory")
#define RELAXED asm volatile("barrier.cluster.arrive.relaxed.aligned;" \\
    "barrier.cluster.wait.aligned;" ::: "memory")
#define PEEK (*(int *)__cluster_map_shared_rank(s[0] + t, other))
#define MOVE_TO(a, b) copy_to(peer(a, other), s[0], 256, peer(b, other))
#define BARE(name, ...) extern "C" __global__ void __cluster_dims__(2, 1, 1) name( \\
    const __grid_constant__ CUtensorMap map, const int *x, int *out) { \\
    __shared__ alignas(128) int s[4][64]; \\
    __shared__ u64 full[4], empty[4]; \\
    int t = threadIdx.x, v = 0, me = rank(), other = me ^ 1; \\
    __VA_ARGS__ }
#define PLAIN(name, ...) extern "C" __global__ void name( \\
    const __grid_constant__ CUtensorMap map, const int *x, int *out) { \\
    __shared__ alignas(128) int s[4][64]; \\
    __shared__ u64 full[4], empty[4]; \\
    int t = threadIdx.x, v = 0; \\
    T0 { for (int i = 0; i < 4; i++) { init(&full[i], 1); init(&empty[i], 64); } FENCE; } \\
    SYNC; \\
    __VA_ARGS__ }
#define PAIRED(name, ...) extern "C" __global__ void __cluster_dims__(2, 1, 1) name( \\
    const __grid_constant__ CUtensorMap map, const int *x, int *out) { \\
    __shared__ alignas(128) int s[4][64]; \\
    __shared__ u64 full[4], empty[4]; \\
    int t = threadIdx.x, v = 0, me = rank(), other = me ^ 1; \\
    T0 for (int i = 0; i < 4; i++) { init(&full[i], 1); init(&empty[i], 128); } \\
    SHOW; FENCE; \\
    __VA_ARGS__ }
"""
# Of a block: the rule, what is wrong, and what is right.
IN_A_BLOCK = (
    ("copy-race", "T0 GET(0, 0); SYNC; out[t] = s[0][t]; wait(&full[0], 0);",
     "T0 GET(0, 0); SYNC; wait(&full[0], 0); out[t] = s[0][t];"),
    ("copy-race", "T0 { GET(0, 0); GET(1, 1); } wait(&full[0], 0); out[t] = s[1][t];"
     "wait(&full[1], 0);",
     "T0 { GET(0, 0); GET(1, 1); } wait(&full[0], 0); wait(&full[1], 0); out[t] = s[1][t];"),
    ("copy-race", "T0 GET(0, 0); SYNC; s[0][t] = 0; wait(&full[0], 0); out[t] = s[0][t];",
     "T0 GET(0, 0); SYNC; wait(&full[0], 0); s[0][t] += 1; out[t] = s[0][t];"),
    ("copy-race", "T0 { expect(&full[0], 256); BOX(0); } SYNC; out[t] = s[0][t]; "
     "wait(&full[0], 0);",
     "T0 { expect(&full[0], 256); BOX(0); } SYNC; wait(&full[0], 0); out[t] = s[0][t];"),
    ("copy-race", "T0 { expect(&full[0], 256); BOX(0); } SYNC; s[0][t] = 1; wait(&full[0], 0);",
     "T0 { expect(&full[0], 256); BOX(0); } SYNC; wait(&full[0], 0); s[0][t] = 1;"),
    ("copy-race", "for (int k = 0; k < 2; k++) { SYNC; T0 GET(k, 0); wait(&full[0], 0);"
     "v += s[0][t]; } out[t] = v;",
     "for (int k = 0; k < 2; k++) { SYNC; T0 GET(k, 0); wait(&full[0], k); v += s[0][t]; }"
     "out[t] = v;"),
    ("no-progress", "T0 { expect(&full[0], 512); load(s[0], x, 256, &full[0]); }"
     "wait(&full[0], 0); out[t] = s[0][t];",
     "T0 { expect(&full[0], 512); load(s[0], x, 256, &full[0]); load(s[1], x, 256, &full[0]); }"
     "wait(&full[0], 0); out[t] = s[0][t];"),
    ("no-progress", "T0 { expect(&full[0], 128); load(s[0], x, 256, &full[0]); }"
     "wait(&full[0], 0); out[t] = s[0][t];",
     "T0 { expect(&full[0], 128); load(s[0], x, 128, &full[0]); }"
     "wait(&full[0], 0); if (t < 32) out[t] = s[0][t];"),
    ("no-progress", "T0 { expect(&full[0], 512); BOX(0); } wait(&full[0], 0); out[t] = s[0][t];",
     "T0 { expect(&full[0], 256); BOX(0); } wait(&full[0], 0); out[t] = s[0][t];"),
    ("no-progress", "T0 GET(0, 0); wait(&full[0], 0); v = s[0][t]; if (t < 63) arrive(&empty[0]);"
     "T0 wait(&empty[0], 0); out[t] = v;",
     "T0 GET(0, 0); wait(&full[0], 0); v = s[0][t]; arrive(&empty[0]);"
     "T0 wait(&empty[0], 0); out[t] = v;"),
    ("shared-race", "T0 GET(0, 0); wait(&full[0], 0); v = s[0][63 - t]; T0 GET(1, 0);"
     "wait(&full[0], 1); out[t] = v + s[0][t];",
     "T0 GET(0, 0); wait(&full[0], 0); v = s[0][63 - t]; arrive(&empty[0]);"
     "T0 { wait(&empty[0], 0); GET(1, 0); } wait(&full[0], 1); out[t] = v + s[0][t];"),
    ("shared-race", "T0 GET(0, 0); wait(&full[0], 0); arrive(&empty[0]); v = s[0][63 - t];"
     "T0 { wait(&empty[0], 0); GET(1, 0); } wait(&full[0], 1); out[t] = v + s[0][t];",
     "T0 GET(0, 0); wait(&full[0], 0); v = s[0][63 - t]; SYNC; T0 GET(1, 0); wait(&full[0], 1);"
     "out[t] = v + s[0][t];"),
    ("proxy-fence", "s[0][t] = t; SYNC; T0 { save(out, s[0], 256); COMMIT; AWAIT(0); }",
     "s[0][t] = t; FENCE; SYNC; T0 { save(out, s[0], 256); COMMIT; AWAIT(0); }"),
    ("proxy-fence", "s[0][t] = t; SYNC; T0 { BOX_OUT; COMMIT; AWAIT(0); }",
     "s[0][t] = t; FENCE; SYNC; T0 { BOX_OUT; COMMIT; AWAIT(0); }"),
    ("proxy-fence", "s[0][t] = t; SYNC; T0 { ADD_OUT; COMMIT; AWAIT(0); }",
     "s[0][t] = t; FENCE; SYNC; T0 { ADD_OUT; COMMIT; AWAIT(0); }"),
    ("proxy-fence", "FENCE; s[0][t] = t; SYNC; T0 { save(out, s[0], 256); COMMIT; AWAIT(0); }",
     "s[0][t] = t; SYNC; FENCE; T0 { save(out, s[0], 256); COMMIT; AWAIT(0); }"),
    ("shared-race", "s[0][t] = t; FENCE; T0 { save(out, s[0], 256); COMMIT; AWAIT(0); }",
     "s[0][t] = t; FENCE; SYNC; T0 { save(out, s[0], 256); COMMIT; READ(0); AWAIT(0); }"),
    ("bulk-group", "s[0][t] = t; FENCE; SYNC; T0 { save(out, s[0], 256); COMMIT; }",
     "s[0][t] = t; FENCE; SYNC; T0 { save(out, s[0], 256); COMMIT; READ(0); }"),
    ("bulk-group", "s[0][t] = t; FENCE; SYNC; T0 { save(out, s[0], 256); AWAIT(0); }",
     "s[0][t] = t; FENCE; SYNC; T0 { save(out, s[0], 256); COMMIT; AWAIT(0); }"),
    ("bulk-group", "s[0][t] = t; FENCE; SYNC; T0 { BOX_OUT; AWAIT(0); }",
     "s[0][t] = t; FENCE; SYNC; T0 { BOX_OUT; COMMIT; READ(0); }"),
    ("bulk-group", "s[0][t] = t; FENCE; SYNC; T0 { save(out, s[0], 256); COMMIT;"
     "ADD_OUT; COMMIT; AWAIT(1); }",
     "s[0][t] = t; FENCE; SYNC; T0 { save(out, s[0], 256); COMMIT; ADD_OUT; COMMIT; AWAIT(0); }"),
    ("copy-race", "s[0][t] = t; FENCE; SYNC; T0 { save(out, s[0], 256); COMMIT; s[0][0] = 1;"
     "AWAIT(0); }",
     "s[0][t] = t; FENCE; SYNC; T0 { save(out, s[0], 256); COMMIT; READ(0); s[0][0] = 1; }"),
    ("copy-race", "s[0][t] = t; FENCE; SYNC; T0 { BOX_OUT; COMMIT; } SYNC; s[0][t] = 0;"
     "T0 AWAIT(0);",
     "s[0][t] = t; FENCE; SYNC; T0 { BOX_OUT; COMMIT; READ(0); } SYNC; s[0][t] = 0;"),
)  # fmt: skip
# Of two blocks of a cluster.
IN_A_CLUSTER = (
    (
        "cluster-start",
        "STORE_AT(peer(&s[0][t], other), t); MEET; out[t] = s[0][t]; MEET;",
        "MEET; STORE_AT(peer(&s[0][t], other), t); MEET; out[t] = s[0][t];",
    ),
    (
        "cluster-end",
        "MEET; STORE_AT(peer(&s[0][t], other), t); out[t] = t;",
        "MEET; STORE_AT(peer(&s[0][t], other), t); MEET; out[t] = t;",
    ),
    (
        "copy-race",
        "T0 expect(&full[0], 256); MEET; "
        "T0 if (me == 0) load_all(s[0], x, 256, &full[0], 3);"
        "out[t] = s[0][t]; wait(&full[0], 0); MEET;",
        "T0 expect(&full[0], 256); MEET; T0 if (me == 0) load_all(s[0], x, 256, &full[0], 3);"
        "wait(&full[0], 0); out[t] = s[0][t]; MEET;",
    ),
    (
        "no-progress",
        "T0 if (me == 0) expect(&full[0], 512); else expect(&full[0], 256); MEET;"
        "T0 if (me == 0) load_all(s[0], x, 256, &full[0], 3); wait(&full[0], 0); MEET;",
        "T0 expect(&full[0], 256); MEET; T0 if (me == 0) load_all(s[0], x, 256, &full[0], 3);"
        "wait(&full[0], 0); MEET;",
    ),
    (
        "no-progress",
        "T0 expect(&full[0], 256); MEET; "
        "T0 if (me == 0) load_all(s[0], x, 256, &full[0], 1);"
        "wait(&full[0], 0); MEET;",
        "T0 if (me == 0) expect(&full[0], 256); else arrive(&full[0]); MEET;"
        "T0 if (me == 0) load_all(s[0], x, 256, &full[0], 1); wait(&full[0], 0); MEET;",
    ),
    (
        "cluster-start",
        "T0 arrive_at(peer(&empty[1], other)); MEET; MEET;",
        "MEET; T0 arrive_at(peer(&empty[1], other)); MEET;",
    ),
    (
        "cluster-start",
        "if (me == 0) { T0 { expect(&full[0], 256); load_all(s[0], x, 256, &full[0], "
        "3); } } else T0 expect(&full[0], 256); wait(&full[0], 0); MEET;",
        "T0 expect(&full[0], 256); MEET; T0 if (me == 0) load_all(s[0], x, 256, &full[0], 3);"
        "wait(&full[0], 0); MEET;",
    ),
    (
        "cluster-end",
        "s[0][t] = t; MEET; out[t] = PEEK;",
        "s[0][t] = t; MEET; v = PEEK; MEET; out[t] = v;",
    ),
    (
        "cluster-end",
        "MEET; T0 arrive_at(peer(&empty[1], other)); out[t] = t;",
        "MEET; T0 arrive_at(peer(&empty[1], other)); out[t] = t; MEET;",
    ),
    (
        "cluster-race",
        "s[0][t] = t; MEET; v = PEEK;SYNC; s[0][t] = v; MEET; out[t] = s[0][t];",
        "s[0][t] = t; MEET; v = PEEK; MEET;s[0][t] = v; out[t] = s[0][t];",
    ),
    (
        "no-progress",
        "T0 expect(&full[0], 256); MEET; T0 send(peer(&s[0][0], other), 7, "
        "peer(&full[0], other)); wait(&full[0], 0); MEET;",
        "T0 expect(&full[0], 256); MEET; send(peer(&s[0][t], other), 7, peer(&full[0], other));"
        "wait(&full[0], 0); out[t] = s[0][t]; MEET;",
    ),
    (
        "no-progress",
        "MEET; if (t < 63) arrive_at(peer(&empty[0], other)); arrive(&empty[0]);"
        "wait_for(&empty[0], 0); MEET;",
        "MEET; arrive_at(peer(&empty[0], other)); arrive(&empty[0]); wait_for(&empty[0], 0); MEET;",
    ),
    (
        "copy-race",
        "T0 expect(&full[0], 256); s[0][t] = t; FENCE; MEET; T0 MOVE_TO(s[1], &full[0]);"
        "out[t] = s[1][t]; wait(&full[0], 0); MEET;",
        "T0 expect(&full[0], 256); s[0][t] = t; FENCE; MEET; T0 MOVE_TO(s[1], &full[0]);"
        "wait(&full[0], 0); out[t] = s[1][t]; MEET;",
    ),
)
# Of two blocks whose arrivals at the barrier of their cluster are relaxed.
RELAXED = (
    ("mbarrier-init", "T0 init(&empty[0], 1); RELAXED; T0 arrive_at(peer(&empty[0], other));"
     "wait_for(&empty[0], 0); MEET;",
     "T0 { init(&empty[0], 1); SHOW; } RELAXED; T0 arrive_at(peer(&empty[0], other));"
     "wait_for(&empty[0], 0); MEET;"),
    ("mbarrier-init", "T0 { SHOW; init(&empty[0], 1); } RELAXED;"
     "T0 arrive_at(peer(&empty[0], other)); wait_for(&empty[0], 0); MEET;",
     "T0 init(&empty[0], 1); MEET; T0 arrive_at(peer(&empty[0], other));"
     "wait_for(&empty[0], 0); MEET;"),
    ("mbarrier-init", "T0 { init(&full[0], 1); expect(&full[0], 256); } RELAXED;"
     "T0 if (me == 0) load_all(s[0], x, 256, &full[0], 3); wait(&full[0], 0); MEET;",
     "T0 { init(&full[0], 1); SHOW; expect(&full[0], 256); } RELAXED; SYNC;"
     "T0 if (me == 0) load_all(s[0], x, 256, &full[0], 3); wait(&full[0], 0); MEET;"),
)  # fmt: skip
PAIRS = [
    (maker, *pair)
    for maker, pairs in (("PLAIN", IN_A_BLOCK), ("PAIRED", IN_A_CLUSTER), ("BARE", RELAXED))
    for pair in pairs
]


def found(name: str, number: int) -> set[str]:
    """Return the rules that a kernel breaks, with one cluster of two blocks or one block."""
    maker, _, wrong, right = PAIRS[number]
    body = wrong if name == "wrong" else right
    source = cuda_source(f"{HEAD}{maker}({name}, {body})\n", includes=[str(BULK)])
    blocks = 1 if maker == "PLAIN" else 2
    x, out = np.arange(256, dtype=np.int32), np.zeros(64 * blocks, np.int32)
    box = TensorMap(np.zeros((8, 8), np.int32), (8, 8))
    return {one.rule for one in gpusim.check(source[name][blocks, 64], box, x, out).errors}


LONG = (33, 34)  # lanes poll an mbarrier for ever: 4 and 35 s


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in range(len(PAIRS))],
)
def test_a_check_finds_what_is_wrong_and_accuses_no_twin(number: int) -> None:
    """The planted rule is among those of the wrong kernel; the right one breaks none."""
    assert PAIRS[number][1] in found("wrong", number)
    assert not found("right", number) - {"block-race"}
