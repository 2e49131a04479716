"""Pairs of kernels in CUDA C++, a planted bug and its correction, made from families.

Asynchronous copies, numbered barriers, scopes and fences: a family is a text with a few places that
its members fill differently. `CORRECTED(is, was)` is the first with FIXED, else the second. A bug
lies in the lines that end in `// <-`; a flag whose scope is too narrow is one in those that end in
`// <+`. Nothing of gpusim is imported: `sanitize_families.py` runs the same kernels on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import Template

HEAD = Path(__file__).with_name("families.cuh").read_text()


@dataclass(frozen=True)
class Pair:
    """A kernel with a bug, its launch, and the rule that the bug breaks."""

    name: str
    text: str
    rule: str
    blocks: int = 1
    threads: int = 128


def source(pairs: list[Pair]) -> str:
    """Return the kernels of some pairs as one text."""
    return HEAD + "".join(one.text for one in pairs)


PAIRS: list[Pair] = []


def member(
    name: str, rule: str, body: str, blocks: int = 1, threads: int = 128, **filled: object
) -> None:
    """Add a pair: `body` with its places filled."""
    text = Template(body.strip("\n")).substitute({key: str(value) for key, value in filled.items()})
    kernel = (
        f"\n__global__ void {name}(int *x, int *out) {{\n    int t = threadIdx.x;\n{text}\n}}\n"
    )
    PAIRS.append(Pair(name, kernel, rule, blocks, threads))


# -- asynchronous copies ---------------------------------------------------------------

COPIES = {"four": ("ca", 4), "eight": ("ca", 8), "sixteen": ("ca", 16), "past_the_l1": ("cg", 16)}
READERS = {
    "its_lane": ("t", ";"),
    "another_lane": ("t ^ 1", "__syncwarp()"),
    "another_warp": ("t ^ 64", "__syncthreads()"),
}

for size, (how, width) in COPIES.items():
    for reader, (who, meeting) in READERS.items():
        member(
            f"copy_of_{size}_read_without_a_wait_by_{reader}",
            "copy-race",
            """
    __shared__ __align__(16) int s[128 * $words];
    COPY("$how", $width, s + $words * t, x + $words * t);  // <-
    COMMIT();
    CORRECTED(WAIT(0), );
    $meeting;
    out[t] = s[$words * ($who)];  // <-
""",
            how=how, width=width, words=width // 4, who=who, meeting=meeting,
        )  # fmt: skip

for size, reader, wait in (
    ("four", "its_lane", "WAIT(0)"),
    ("eight", "another_lane", "WAIT_ALL()"),
    ("past_the_l1", "another_warp", "WAIT_ALL()"),
    ("four", "another_warp", "WAIT(0)"),
):
    (how, width), (who, meeting) = COPIES[size], READERS[reader]
    member(
        f"copy_of_{size}_awaited_after_the_read_by_{reader}",
        "copy-race",
        """
    __shared__ __align__(16) int s[128 * $words];
    COPY("$how", $width, s + $words * t, x + $words * t);  // <-
    COMMIT();
    CORRECTED($wait, );
    $meeting;
    out[t] = s[$words * ($who) + $words - 1];  // <-
    CORRECTED(, $wait);
""",
        how=how, width=width, words=width // 4, who=who, meeting=meeting, wait=wait,
    )  # fmt: skip

for groups, left, read in (
    (2, 1, 1), (2, 2, 0), (3, 1, 2), (3, 2, 1), (3, 2, 2),
    (4, 1, 3), (4, 2, 2), (4, 3, 1), (4, 4, 0),
):  # fmt: skip
    member(
        f"group_{read}_of_{groups}_read_with_{left}_pending",
        "copy-race",
        """
    __shared__ int s[$groups][128];
    for (int g = 0; g < $groups; g++) { COPY("ca", 4, s[g] + t, x + 128 * g + t); COMMIT(); }  // <-
    WAIT(CORRECTED($right, $left));
    __syncthreads();
    out[t] = s[$read][127 - t];  // <-
    WAIT_ALL();
""",
        groups=groups, left=left, read=read, right=groups - 1 - read,
    )  # fmt: skip

for size in ("four", "past_the_l1"):
    how, width = COPIES[size]
    member(
        f"copy_of_{size}_in_the_next_group",
        "copy-race",
        """
    __shared__ __align__(16) int s[3][128 * $words];
    COPY("$how", $width, s[0] + $words * t, x + $words * t);
    CORRECTED(, COMMIT());
    COPY("$how", $width, s[1] + $words * t, x + $words * (t ^ 1));  // <-
    CORRECTED(COMMIT(), );
    COPY("$how", $width, s[2] + $words * t, x + $words * (t ^ 2));
    COMMIT();
    WAIT(1);
    out[t] = s[1][$words * t];  // <-
    WAIT(0);
    out[t] += s[2][$words * t];
""",
        how=how, width=width, words=width // 4,
    )  # fmt: skip
    member(
        f"copy_of_{size}_of_no_group",
        "copy-race",
        """
    __shared__ __align__(16) int s[128 * $words];
    COPY("$how", $width, s + $words * t, x + $words * t);  // <-
    CORRECTED(COMMIT(), );
    WAIT(0);
    __syncthreads();
    out[t] = s[$words * (t ^ 33)];  // <-
""",
        how=how, width=width, words=width // 4,
    )  # fmt: skip

RING = """
    __shared__ int s[$depth][128];
    int sum = 0;
    for (int i = 0; i < 6 + $behind; i++) {
        if (i < 6) COPY("ca", 4, s[i % $depth] + t, x + 128 * i + t);  // <-
        COMMIT();
        if (i < $behind) continue;
        $wait;
        sum += s[(i - $behind) % $depth][127 - t];  // <-
        $end;
    }
    out[t] = sum;
"""
for depth in (2, 3, 4):
    behind = depth - 1
    member(
        f"ring_of_{depth}_that_waits_for_too_few",
        "copy-race",
        RING,
        depth=depth,
        behind=behind,
        wait=f"WAIT(CORRECTED({behind}, {depth})); __syncthreads()",
        end="__syncthreads()",
    )
    member(
        f"ring_of_{depth}_refilled_before_all_have_read",
        "shared-race",
        RING,
        depth=depth,
        behind=behind,
        wait=f"WAIT({behind}); __syncthreads()",
        end="CORRECTED(__syncthreads(), )",
    )
    member(
        f"ring_of_{depth}_with_its_barrier_before_the_wait",
        "shared-race",
        RING,
        depth=depth,
        behind=behind,
        wait=f"CORRECTED(WAIT({behind}); __syncthreads(), __syncthreads(); WAIT({behind}))",
        end="__syncthreads()",
    )

for who, condition in (("thread_0", "t == 0"), ("one_warp", "t < 32")):
    member(
        f"wait_of_{who}_alone",
        "copy-race",
        """
    __shared__ int s[128];
    COPY("ca", 4, s + t, x + t);  // <-
    COMMIT();
    if (CORRECTED(true, $condition)) WAIT(0);
    __syncthreads();
    out[t] = s[127 - t];  // <-
    WAIT(0);
""",
        condition=condition,
    )

for touch, rule, line in (
    ("overwritten", "copy-race", "s[t] = t;"),
    ("counted_up", "copy-race", "atomicAdd(s + t, 1);"),
    ("copied_to_again", "copy-race", 'COPY("ca", 4, s + t, x + 128 + t);'),
):
    member(
        f"place_of_a_copy_{touch}",
        rule,
        """
    __shared__ int s[128];
    COPY("ca", 4, s + t, x + t);  // <-
    COMMIT();
    CORRECTED(WAIT(0), );
    $line  // <-
    WAIT_ALL();
    out[t] = s[t];
""",
        line=line,
    )

for whose, rule, between, index in (
    ("own", "copy-race", "", "t"),
    ("another_warps", "copy-race", "__syncthreads();", "t ^ 64"),
):
    member(
        f"{whose}_source_stored_to",
        rule,
        """
    __shared__ int s[128];
    COPY("ca", 4, s + t, x + t);  // <-
    COMMIT();
    CORRECTED(WAIT(0), );
    $between
    x[$index] = t;  // <-
    WAIT(0);
    out[t] = s[t];
""",
        between=between, index=index,
    )  # fmt: skip
member(
    "source_stored_to_without_a_barrier",
    "global-race",
    """
    __shared__ int s[128];
    COPY("ca", 4, s + t, x + t);  // <-
    COMMIT();
    WAIT(0);
    CORRECTED(__syncthreads(), );
    x[t ^ 64] = t;  // <-
    out[t] = s[t];
""",
)
for part, index in (("copied", 0), ("cleared", 3)):
    member(
        f"{part}_part_read_without_a_wait",
        "copy-race",
        """
    __shared__ __align__(16) int s[512];
    COPY_PART(s + 4 * t, x + 4 * t, 8);  // <-
    COMMIT();
    CORRECTED(WAIT(0), );
    __syncthreads();
    out[t] = s[4 * (127 - t) + $index];  // <-
""",
        index=index,
    )

_copies_end = len(PAIRS)

# -- numbered barriers -----------------------------------------------------------------

for warps in (1, 2):
    for number, of in (("of_its_group", "t / $size"), ("computed", "(x[0] + t / $size)")):
        member(
            f"barrier_{number}_of_{warps}_does_not_order_the_next",
            "shared-race",
            """
    __shared__ int s[128];
    s[t] = x[t];  // <-
    SYNC(1 + $group, $size);
    out[t] = s[CORRECTED(t ^ $last, t ^ $size)];  // <-
""",
            size=32 * warps, last=32 * warps - 1, group=Template(of).substitute(size=32 * warps),
        )  # fmt: skip

for warps in (1, 2, 3):
    member(
        f"barrier_of_{warps}_is_none_of_the_block",
        "shared-race",
        """
    __shared__ int s[128];
    s[t] = x[t];  // <-
    if (t < $size) CORRECTED(SYNC(1, 128), SYNC(1, $size));
    else CORRECTED(SYNC(1, 128), SYNC(2, 128 - $size));
    out[t] = s[127 - t];  // <-
""",
        size=32 * warps,
    )

for producers in (1, 2, 3):
    size = 32 * producers
    member(
        f"reader_that_arrives_behind_{producers}",
        "shared-race",
        """
    __shared__ int s[128];
    if (t < $size) {
        s[t] = x[t];  // <-
        SYNC(1, 128);
    } else {
        CORRECTED(SYNC(1, 128), ARRIVE(1, 128));
        out[t] = s[t % $size];  // <-
    }
""",
        size=size,
    )
    member(
        f"store_of_{producers}_behind_its_arrival",
        "shared-race",
        """
    __shared__ int s[128];
    if (t < $size) {
        CORRECTED(, ARRIVE(5, 128));
        s[t] = x[t];  // <-
        CORRECTED(ARRIVE(5, 128), );
    } else {
        SYNC(5, 128);
        out[t] = s[t % $size];  // <-
    }
""",
        size=size,
    )

QUEUE = """
    __shared__ int s[$depth][64];
    int mine = t & 63, sum = 0;
    if (t < 64) for (int i = 0; i < $depth; i++) s[i][t] = 0;
    __syncthreads();
    if (t < 64) {
        for (int i = 0; i < 5; i++) {
            $free;
            s[i % $depth][mine] = x[64 * i + mine];  // <-
            ARRIVE(1 + i % $depth, 128);
        }
    } else {
        for (int i = 0; i < $depth; i++) ARRIVE(8 + i, 128);
        for (int i = 0; i < 5; i++) {
            SYNC(1 + i % $depth, 128);
            $before;
            sum += s[$slot][63 - mine];  // <-
            $after;
        }
        out[t] = sum;
    }
"""
for depth in (1, 2, 3):
    free, back = f"SYNC(8 + i % {depth}, 128)", f"if (i + {depth} < 5) ARRIVE(8 + i % {depth}, 128)"
    whole = {"depth": depth, "free": free, "before": "", "slot": f"i % {depth}", "after": back}
    changes = {
        "given_back_before_the_read": {
            "before": f"CORRECTED(, {back})",
            "after": f"CORRECTED({back}, )",
        },
    }
    if depth > 1:
        changes["read_from_the_next_slot"] = {"slot": f"CORRECTED(i % {depth}, (i + 1) % {depth})"}
    for what, change in changes.items():
        member(f"queue_of_{depth}_{what}", "shared-race", QUEUE, **{**whole, **change})

for warps in (1, 2):
    member(
        f"tile_of_{warps}_refilled_too_early",
        "shared-race" if warps > 1 else "warp-race",
        """
    __shared__ int s[128];
    int sum = 0, group = t / $size;
    for (int i = 0; i < 4; i++) {
        s[t] = x[128 * i + t];  // <-
        SYNC(1 + group, $size);
        sum += s[t ^ $last];  // <-
        CORRECTED(SYNC(1 + group, $size), );
    }
    out[t] = sum;
""",
        size=32 * warps, last=32 * warps - 1,
    )  # fmt: skip

for waiting in (64, 96):
    member(
        f"barrier_that_{waiting}_reach_and_128_would_open",
        "deadlock",
        """
    out[t] = x[t];
    if (t < $waiting) SYNC(1, CORRECTED($waiting, 128));  // <-
    out[t] += 1;
""",
        waiting=waiting,
    )
for lanes in (1, 16):
    member(
        f"barrier_without_lanes_of_bit_{lanes}",
        "barrier-apart",
        """
    if (CORRECTED(t < 64, (t & $lanes) == 0)) SYNC(1, 64);  // <-
    out[t] = x[t];
""",
        lanes=lanes,
    )
for first, then in ((1, 2), (7, 3)):
    member(
        f"chain_that_meets_at_{then}_before_{first}",
        "shared-race",
        """
    __shared__ int s[32];
    if (t < 32) {
        s[t] = x[t];  // <-
        SYNC($first, 64);
    } else if (t < 64) {
        CORRECTED(SYNC($first, 64); SYNC($then, 64), SYNC($then, 64); SYNC($first, 64));
    } else if (t < 96) {
        SYNC($then, 64);
        out[t] = s[95 - t];  // <-
    }
""",
        first=first, then=then,
    )  # fmt: skip

_barriers_end = len(PAIRS)

# -- scopes and fences -----------------------------------------------------------------

WIDE = ["__threadfence()", 'FENCE("acq_rel.gpu")', 'FENCE("sc.gpu")', "__threadfence_system()"]
NARROW = ["__threadfence_block()", 'FENCE("acq_rel.cta")', 'FENCE("sc.cta")']
FLAGS = {
    "atomics": ("atomicExch(FLAG, 1)", "seen = atomicAdd(FLAG, 0)"),
    "volatile": ("*(volatile int *)FLAG = 1", "seen = *(volatile int *)FLAG"),
    "relaxed": ('ST("relaxed.gpu", FLAG, 1)', 'LD("relaxed.gpu", seen, FLAG)'),
    "an_atomic_and_volatile": ("atomicOr(FLAG, 1)", "seen = *(volatile int *)FLAG"),
    "reductions": ('RED("relaxed.gpu", FLAG, 1)', 'LD("relaxed.gpu", seen, FLAG)'),
}
PASS = """
    int seen = 0;
    if (blockIdx.x == 0 && t == 0) {
        x[5] = 7;  // <-
        $before;
        $set;$narrow
        $behind;
    } else if ($reader) {
        while (seen != 1) { $get; }$narrow
        $acquire;
        out[0] = x[5];  // <-
    }
"""
for number, (flag, (setting, getting)) in enumerate(FLAGS.items()):
    wide, narrow = WIDE[number % len(WIDE)], NARROW[number % len(NARROW)]
    whole = {
        "set": setting, "get": getting, "before": wide, "behind": "", "acquire": wide,
        "reader": "blockIdx.x == 1 && t == 0", "narrow": "",
    }  # fmt: skip
    changes = {
        "without_a_release": {"before": f"CORRECTED({wide}, )"},
        "with_a_release_of_the_block": {"before": f"CORRECTED({wide}, {narrow})"},
        "before_its_fence": {"before": f"CORRECTED({wide}, )", "behind": f"CORRECTED(, {wide})"},
        "without_an_acquire": {"acquire": f"CORRECTED({wide}, )"},
        "with_an_acquire_of_the_block": {"acquire": f"CORRECTED({wide}, {narrow})"},
    }
    for what, change in changes.items():
        member(f"message_by_{flag}_{what}", "block-race", PASS, 2, 64, **{**whole, **change})
    inside = {**whole, "before": narrow, "acquire": narrow, "reader": "blockIdx.x == 0 && t == 32"}
    for what, change in {
        "without_a_release": {"before": f"CORRECTED({narrow}, )"},
        "without_an_acquire": {"acquire": f"CORRECTED({narrow}, )"},
    }.items():
        member(
            f"message_by_{flag}_within_the_block_{what}",
            "global-race",
            PASS,
            2,
            64,
            **{**inside, **change},
        )

for what, setting, getting in (
    ("released_to_the_block", 'ST("release.{}", FLAG, 1)', 'LD("acquire.gpu", seen, FLAG)'),
    ("acquired_by_the_block", 'ST("release.gpu", FLAG, 1)', 'LD("acquire.{}", seen, FLAG)'),
    (
        "released_and_acquired_by_blocks",
        'ST("release.{}", FLAG, 1)',
        'LD("acquire.{}", seen, FLAG)',
    ),
    ("reduced_to_the_block", 'RED("release.{}", FLAG, 1)', 'LD("acquire.gpu", seen, FLAG)'),
    ("swapped_by_the_block", 'RED("release.gpu", FLAG, 1)', 'ATOM("acquire.{}", seen, FLAG, 0)'),
):
    wide_set, narrow_set = setting.format("gpu"), setting.format("cta")
    wide_get, narrow_get = getting.format("gpu"), getting.format("cta")
    member(
        f"message_{what}",
        "block-race",
        PASS,
        2,
        64,
        set=f"CORRECTED({wide_set}, {narrow_set})",
        get=f"CORRECTED({wide_get}, {narrow_get})",
        before="",
        behind="",
        acquire="",
        reader="blockIdx.x == 1 && t == 0",
        narrow="  // <+",
    )

for operation in ("Add", "Max", "Or", "Exch"):
    member(
        f"atomic{operation}_of_the_block_between_blocks",
        "block-race",
        """
    if (t == 0) CORRECTED(atomic$operation, atomic${operation}_block)(FLAG, 1);  // <-
    out[t] = x[t];
""",
        2,
        64,
        operation=operation,
    )

for what, fence, count in (
    ("without_a_fence", "CORRECTED(__threadfence(), )", "atomicAdd"),
    ("with_a_fence_of_the_block", "CORRECTED(__threadfence(), __threadfence_block())", "atomicAdd"),
):
    member(
        f"last_block_{what}",
        "block-race",
        """
    __shared__ bool last;
    x[64 * blockIdx.x + t] = t;  // <-
    $fence;
    __syncthreads();
    if (t == 0) last = $count(FLAG, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        __threadfence();
        for (int b = 0; b < gridDim.x; b++) out[t] += x[64 * b + t];  // <-
    }
""",
        4,
        64,
        fence=fence,
        count=count,
    )

TICKETS = """
    if (t) return;
    int mine = atomicAdd(FLAG, 1);
    while ($serving != mine) {}
    $acquire;
    x[0] += 1;  // <-
    $release;
    atomicAdd(FLAG + 1, 1);
"""
for what, change in {
    "without_an_acquire": {"acquire": "CORRECTED(__threadfence(), )"},
    "with_an_acquire_of_the_block": {
        "acquire": "CORRECTED(__threadfence(), __threadfence_block())"
    },
    "without_a_release": {"release": "CORRECTED(__threadfence(), )"},
    "with_a_release_of_the_block": {"release": "CORRECTED(__threadfence(), __threadfence_block())"},
}.items():
    member(
        f"tickets_{what}",
        "block-race",
        TICKETS,
        4,
        32,
        **{
            "serving": "atomicAdd(FLAG + 1, 0)",
            "acquire": "__threadfence()",
            "release": "__threadfence()",
            **change,
        },
    )

GRID = """
    x[64 * blockIdx.x + t] = t;  // <-
    $before;
    __syncthreads();
    if (t == 0) {
        $arrive(FLAG, 1);
        while (atomicAdd(FLAG, 0) != gridDim.x) {}
        $behind;
    }
    $end;
    out[64 * blockIdx.x + t] = x[64 * ((blockIdx.x + 1) % gridDim.x) + t];  // <-
"""
for what, change in {
    "without_a_release": {"before": "CORRECTED(__threadfence(), )"},
    "with_a_release_of_the_block": {"before": "CORRECTED(__threadfence(), __threadfence_block())"},
    "without_an_acquire": {"behind": "CORRECTED(__threadfence(), )"},
    "without_its_second_barrier": {"end": "CORRECTED(__syncthreads(), __syncwarp())"},
}.items():
    member(
        f"grid_barrier_{what}",
        "block-race",
        GRID,
        3,
        64,
        **{
            "before": "__threadfence()",
            "arrive": "atomicAdd",
            "behind": "__threadfence()",
            "end": "__syncthreads()",
            **change,
        },
    )

TOPICS = {
    "asynchronous copies": PAIRS[:_copies_end],
    "numbered barriers": PAIRS[_copies_end:_barriers_end],
    "scopes and fences": PAIRS[_barriers_end:],
}
