"""How instructions are translated, by their kind."""

from __future__ import annotations

from gpusim.isa.ops import OPS, Instruction, Memory

WIDE_SPACES = ("global", "generic")  # with addresses of 64 bits
# Kinds whose handler of the machine is called for one warp at a time.
CALLED = frozenset((
    "shuffle", "vote", "match", "elect", "reduce_lanes", "differs", "first_lane", "warpsync",
))  # fmt: skip
ACCESSES = ("load", "store", "atomic")
BRANCHES = ("branch", "jump")
UNNOTED = ("bounds", "branch_if_apart")  # by the log of steps, or in code of their own
DECIDING = ("source_branch", "barrier")  # by their first operand
CONSTANTS = ("special", "constant")  # of a warp or launch
BULK_DETAILS = ("load", "store")  # of bulk copies with code
# Kinds that end the run where they are reached.
LEFT = frozenset(("trap",))
CONTROL = frozenset((
    "branch", "branch_if_apart", "jump", "exit", "bsync", "break", "barrier", "named_barrier",
    "arrive", "part", "cluster_wait",
))  # fmt: skip
WITHOUT_OPERANDS = frozenset((
    "branch", "exit", "bsync", "break", "barrier", "bssy", "source_branch", "bounds", "trap",
    "commit_copies", "await_copies", "cluster_arrive", "cluster_wait",
    "commit_bulk", "await_bulk",
))  # fmt: skip
# Kinds that the machine's handlers run, with access to all memory.
HANDLED = frozenset((
    "clock", "texture", "surface_load", "surface_store", "matrix_product", "rows_to_fragments",
    "fragments_to_rows", "warpgroup_product", "transpose", "call_driver",
))  # fmt: skip
TOLD = ("warpgroup_commit", "warpgroup_wait")  # they change nothing
BULK = frozenset(("bulk_copy", "commit_bulk", "land_bulk", "await_bulk"))
OF_WORDS = frozenset(("set_token", "jump", "bulk_copy", "land_bulk", "call_driver"))


def memory_of(row: Instruction) -> Memory:
    """Return the memory that an instruction accesses; it has some."""
    assert row.memory is not None
    return row.memory


def waits(row: Instruction) -> bool:
    """Return whether an instruction waits for the lanes of a mask, its first operand."""
    op = OPS[row.op]
    return op.kind in ("warpsync", "collect") or op.checks_mask


def ends_turn(kind: str) -> bool:
    """Return whether a turn of NumPy's machine always ends after an instruction."""
    return kind in CONTROL | LEFT and kind != "bsync"
