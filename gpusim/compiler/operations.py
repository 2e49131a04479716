"""The operations of the SSA form: a row each, with its traits for any operands.

Passes ask the row of a value (`Value.operation`) and keep no lists of operations, so that an
operation added here is known to all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Access = Literal["", "load", "store", "atomic"]
Uniform = Literal["", "reads", "computes"]
Fetched = Literal["", "constant", "block"]


@dataclass(frozen=True)
class Operation:
    """A row of OPERATIONS: `arity` (-1 for any), the meaning of `detail`, and its traits.

    `pure`: it has no effect besides its result.
    `convergent`: it communicates between lanes, so its set of active lanes must not change.
    `varies_by_lane`: its result may differ from lane to lane though all operands agree.
    `access`: "load", "store" or "atomic" where it touches memory; `is_vector` if it touches
    several elements at once.
    `orders_memory`: memory accesses are not moved across it; it orders other threads' writes.
    `commutative`: its two operands may change places.
    `swapped`, `inverse`: the equivalent comparison with exchanged operands, and the negated one.
    `may_trap`: it has no result for some operands, and is not executed speculatively.
    `immediate`: a constant; it is placed in no block.
    `fetched`: "constant" where it reads constant memory, "block" where it is the same for all
    threads of a block; it is fetched again where that is cheaper than keeping it.
    `sinks`: sinking it after a branch towards its uses may save its execution.
    `is_free`: it takes no instruction of its own.
    `passes_phi`: it may be made once after a phi instead of once before it on each path.
    `uniform`: "computes" where the uniform datapath has it, "reads" where it takes operands from
    there; `scales` its first operand, always in a vector register.
    `least_cc`: the lowest compute capability with it.
    `describes`: it annotates the source and is never issued, nor are computations for it alone.
    `is_lowered`: the lowering has instructions for it; others have nvcc's code alone.
    `word`: its word of the dialect, with places for parts of `detail`.
    """

    arity: int
    pure: bool = True
    detail: str = ""
    convergent: bool = False
    varies_by_lane: bool = False
    access: Access = ""
    is_vector: bool = False
    orders_memory: bool = False
    commutative: bool = False
    swapped: str = ""
    inverse: str = ""
    may_trap: bool = False
    immediate: bool = False
    fetched: Fetched = ""
    sinks: bool = True
    is_free: bool = False
    passes_phi: bool = False
    uniform: Uniform = ""
    scales: bool = False
    least_cc: tuple[int, int] = (1, 0)
    describes: bool = False
    is_lowered: bool = True
    word: str = ""

    @property
    def is_comparison(self) -> bool:
        """Whether it compares two operands."""
        return bool(self.inverse)

    @property
    def is_of_one_element(self) -> bool:
        """Whether it loads or stores one element."""
        return self.access in ("load", "store") and not self.is_vector

    @property
    def concerns_memory(self) -> bool:
        """Whether it accesses memory or orders accesses of other threads."""
        return bool(self.access) or self.orders_memory


def _comparison(swapped: str, inverse: str) -> Operation:
    """Return the row of a comparison: operands share one dtype, the result is BOOL."""
    return Operation(
        2, commutative=inverse in ("eq", "ne"), swapped=swapped, inverse=inverse, uniform="reads"
    )


def _access(arity: int, access: Access, detail: str) -> Operation:
    """Return the row of a memory access; the result of a load or atomic varies by lane."""
    return Operation(
        arity,
        pure=False,
        detail=detail,
        varies_by_lane=access != "store",
        access=access,
        is_vector=detail.endswith("count)"),
    )


def _of_lanes(arity: int, detail: str = "", **traits: Any) -> Operation:
    """Return the row of an operation that lanes of a warp execute together."""
    return Operation(
        arity, pure=False, detail=detail, convergent=True, varies_by_lane=True, **traits
    )


def _of_hopper(arity: int, detail: str = "", **traits: Any) -> Operation:
    """Return the row of an operation from compute capability 9.0 on, in nvcc's code alone."""
    return Operation(arity, detail=detail, least_cc=(9, 0), is_lowered=False, **traits)


OPERATIONS: Mapping[str, Operation] = {
    "const": Operation(
        0, detail="NumPy scalar of the value's dtype", immediate=True, sinks=False, is_free=True
    ),
    # A variable that no assignment reached; any value will do.
    "undef": Operation(0, immediate=True, sinks=False, is_free=True),
    "param": Operation(
        0, detail="name of a scalar parameter", fetched="constant", sinks=False, uniform="computes"
    ),
    # Of dynamic shared memory: ("", bytes of an element).
    "length": Operation(
        0,
        detail="(parameter name, axis or None for the total)",
        fetched="constant",
        sinks=False,
        uniform="computes",
    ),
    # Of a strided array, how many elements lie from one index to the next.
    "stride": Operation(
        0, detail="(parameter name, axis)", fetched="constant", sinks=False, uniform="computes"
    ),
    "sreg": Operation(0, detail="a name of SPECIAL_REGISTERS", sinks=False),
    "phi": Operation(
        -1, detail="nothing; args are in the order of Block.preds", uniform="computes"
    ),
    # Operands and result share one dtype. `div` is IEEE division; `idiv` and `rem`
    # truncate toward zero as in C, and share their first steps where they stand together.
    "add": Operation(2, commutative=True, passes_phi=True, uniform="computes"),
    "sub": Operation(2, uniform="computes"),
    "mul": Operation(2, commutative=True, passes_phi=True, uniform="computes"),
    "div": Operation(2),
    "idiv": Operation(2, may_trap=True, sinks=False),
    "rem": Operation(2, may_trap=True, sinks=False),
    "and": Operation(2, commutative=True, passes_phi=True, uniform="computes"),
    "or": Operation(2, commutative=True, passes_phi=True, uniform="computes"),
    "xor": Operation(2, commutative=True, passes_phi=True, uniform="computes"),
    "min": Operation(2, commutative=True, uniform="reads"),
    "max": Operation(2, commutative=True, uniform="reads"),
    # The count has the dtype of the value shifted; `shr` is arithmetic where signed.
    "shl": Operation(2, passes_phi=True, uniform="computes", scales=True),
    "shr": Operation(2, passes_phi=True, uniform="computes", scales=True),
    # The upper word of two that are shifted left together by a constant, 1 to 31.
    "funnel": Operation(3),
    "neg": Operation(1, passes_phi=True),
    "not": Operation(1, passes_phi=True, uniform="computes"),
    "abs": Operation(1, passes_phi=True),
    "lt": _comparison("gt", "ge"),
    "le": _comparison("ge", "gt"),
    "gt": _comparison("lt", "le"),
    "ge": _comparison("le", "lt"),
    "eq": _comparison("eq", "ne"),
    "ne": _comparison("ne", "eq"),
    # Condition, where true, where false.
    "select": Operation(3, uniform="reads"),
    # To dtype, as C converts.
    "cast": Operation(1, sinks=False, is_free=True, passes_phi=True, uniform="computes"),
    # A constant in a register, never folded into its uses as an immediate.
    "held": Operation(1, uniform="computes"),
    "math": Operation(-1, detail="name of the function, as in CUDA: sqrt exp log sin ... fma"),
    "popc": Operation(1),
    "ffs": Operation(1),
    "clz": Operation(1),
    "brev": Operation(1),
    # Memory. The first operand is an index, of elements from the array's start, until lowering
    # makes it an address; the values to store follow, or an atomic's operands (cas: compare,
    # value). An atomic gives the old value.
    "load": _access(1, "load", "Array"),
    "store": _access(2, "store", "Array"),
    # The index is a multiple of the count; `element` extracts one of several results.
    "load_vector": _access(1, "load", "(Array, count)"),
    "element": Operation(1, detail="position"),
    "store_vector": _access(-1, "store", "(Array, count)"),
    "atomic": _access(-1, "atomic", "(Array, add sub min max exch cas and or xor)"),
    # Addresses in bytes, made by lowering.
    "pointer": Operation(0, detail="name of a global array, which starts here", fetched="constant"),
    "shared_base": Operation(0, fetched="block"),  # where the block's shared memory starts
    # An index, and its base.
    "address": Operation(2, detail="bytes of an element", uniform="reads", scales=True),
    # Threads together. A predicate, if any; a mask; mask, value, lane, width; mask, predicate.
    "barrier": Operation(
        -1, pure=False, detail="sync count and or", convergent=True, orders_memory=True
    ),
    "syncwarp": Operation(1, pure=False, convergent=True, orders_memory=True),
    "shuffle": _of_lanes(4, "idx up down bfly"),
    "vote": _of_lanes(2, "all any ballot"),
    # Mask, value; "all" gives the mask and whether all have the value.
    "match": _of_lanes(2, "any all", least_cc=(7, 0), word="cuda.match_{}_sync"),
    # Mask, value of 32 bits.
    "reduce": _of_lanes(
        2,
        "add min max and or xor",
        least_cc=(8, 0),
        is_lowered=False,
        word="cuda.reduce_{}_sync",
    ),
    "activemask": _of_lanes(0),
    "fence": Operation(0, pure=False, detail="block gpu system", orders_memory=True),
    # Blocks of a cluster together. `map_shared_rank` takes a rank: from then on the other block's
    # array is known as one of the space "cluster".
    "cluster": _of_hopper(0, "block_rank num_blocks", word="cuda.cluster.{}"),
    "cluster_barrier": _of_hopper(
        0,
        "sync barrier_arrive barrier_wait",
        pure=False,
        convergent=True,
        orders_memory=True,
        word="cuda.cluster.{}",
    ),
    "map_shared_rank": _of_hopper(
        1, "(other's Array, own Array)", pure=False, word="cuda.cluster.map_shared_rank"
    ),
    # Index of an mbarrier; then the expected arrivals, a count and bytes, or a parity.
    "mbarrier": _of_hopper(
        -1,
        "(Array, init arrive arrive_tx wait_parity)",
        pure=False,
        orders_memory=True,
        word="cuda.barrier.{1}",
    ),
    # Index of the target, of the source, bytes, index of the mbarrier.
    "memcpy_async_tx": _of_hopper(
        4,
        "(target, source, Array of mbarriers)",
        pure=False,
        orders_memory=True,
        word="cuda.memcpy_async_tx",
    ),
    "proxy_fence": _of_hopper(0, pure=False, orders_memory=True, word="cuda.fence_proxy_async"),
    # A conditional of the source, counted but never issued: keeps divergence at the source
    # visible after the branch itself is gone.
    "source_branch": Operation(1, pure=False, is_free=True, describes=True),
    # Whether a lane meets behaviour undefined in C; present only in kernels built for checking.
    "source_check": Operation(1, pure=False, detail="name of a rule", is_free=True, describes=True),
    # The indices of an access along the axes of its array, checked at run time.
    "bounds": Operation(-1, pure=False, detail="Array", is_free=True, describes=True),
}

COMPARISONS = tuple(name for name, row in OPERATIONS.items() if row.is_comparison)


@dataclass(frozen=True)
class SpecialRegisterTraits:
    """A row of SPECIAL_REGISTERS: its largest value, and its variation between threads.

    Some vary by lane of a warp; the launch's are equal in all threads, at least 1, and lie in
    constant memory.
    """

    largest: int
    varies_by_lane: bool = False
    is_of_launch: bool = False


# The largest values are from the CUDA C++ Programming Guide.
SPECIAL_REGISTERS: Mapping[str, SpecialRegisterTraits] = {
    "tid.x": SpecialRegisterTraits(1023, varies_by_lane=True),
    "tid.y": SpecialRegisterTraits(1023, varies_by_lane=True),
    "tid.z": SpecialRegisterTraits(63, varies_by_lane=True),
    "laneid": SpecialRegisterTraits(31, varies_by_lane=True),
    "ctaid.x": SpecialRegisterTraits(2**31 - 2),
    "ctaid.y": SpecialRegisterTraits(65534),
    "ctaid.z": SpecialRegisterTraits(65534),
    "ntid.x": SpecialRegisterTraits(1024, is_of_launch=True),
    "ntid.y": SpecialRegisterTraits(1024, is_of_launch=True),
    "ntid.z": SpecialRegisterTraits(64, is_of_launch=True),
    "nctaid.x": SpecialRegisterTraits(2**31 - 1, is_of_launch=True),
    "nctaid.y": SpecialRegisterTraits(65535, is_of_launch=True),
    "nctaid.z": SpecialRegisterTraits(65535, is_of_launch=True),
}
