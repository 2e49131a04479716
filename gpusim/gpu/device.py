"""A GPU as numbers: read strictly from a TOML file, each number with its unit and its source.

The dataclasses below are the one table of a device file's content: key, type, meaning, unit
and valid range. Errors, `gpusim devices` and the documentation read it; the effect of the
numbers on a kernel is modelled by the clock. A key may have a default rule for files without it. A
file may be `like` a built-in device: that one's file gives the keys that it lacks.

A number is `exact` (a data sheet, white paper or programming guide gives it), `measured` (by a
microbenchmark on this GPU, or on one with the same chip), `estimated` (from other GPUs or by
reasoning; the source says how) or `unmeasured` (an H200's value or ratio, in want of a
microbenchmark on this GPU).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from gpusim.errors import InputError, did_you_mean
from gpusim.host import files
from gpusim.host.files import shown
from gpusim.launch.grid import SHARED_BYTES_PER_BLOCK, WARP_SIZE, ComputeCapability

Value = int | float | bool | str

KINDS = {
    "exact": "from a data sheet, white paper or programming guide",
    "measured": "by a microbenchmark on this GPU, or on one with the same chip",
    "estimated": "from other GPUs or by reasoning",
    "unmeasured": "no microbenchmark on this GPU: an H200's value or ratio",
}

ABLATIONS = {
    "bank-conflicts": "shared-memory accesses at the ideal number of wavefronts",
    "barriers": "no waiting at barriers",
    "divergence": "only the longest of diverged paths takes time",
    "bandwidth": "unlimited bandwidth of L2 and DRAM",
    "atomics": "no serialisation of atomics on one address",
    "block-launch": "no time to launch and retire blocks",
    "launch-overhead": "no launch overhead",
}

CLUSTER_SIZES = 2, 4, 8, 16  # blocks; sizes between have the numbers of the next

_DIRECTORY = Path(__file__).parent / "devices"
_MOST_SHOWN = 12
_LONGEST_TEXT = 2000  # ten times the longest source
_LEAF = ("value", "kind", "source")
_LEAF_FORM = '{ value = ..., kind = "measured", source = "..." }'


class DeviceError(InputError):
    """A device that does not exist, or a device file that cannot be used as it is."""


@dataclass(frozen=True)
class Fact:
    """One number of a device; `kind` is a name of KINDS. Its file gives it, or `is_by_rule`."""

    value: Value
    unit: str
    kind: str
    source: str
    is_by_rule: bool = False


@dataclass(frozen=True)
class Default:
    """The default of a key: a rule over keys without a default of their own, and its reason."""

    rule: Callable[[Mapping[str, Any]], Value]
    source: str

    def fact(self, unit: str, values: Mapping[str, Any]) -> Fact:
        """Return the key's fact for a device of these values; it is unmeasured."""
        source = f"no microbenchmark on this GPU; {self.source}"
        return Fact(self.rule(values), unit, "unmeasured", source, is_by_rule=True)


@dataclass(frozen=True)
class Key:
    """A key of a device file: meaning, unit, range of valid values, and default."""

    doc: str
    unit: str
    type: str
    least: float | None
    most: float | None
    choices: tuple[int | str, ...]
    multiple_of: int
    default: Default | None

    @property
    def expected(self) -> str:
        """The possible values and their unit, in words."""
        noun = {"int": "a whole number", "float": "a number", "bool": "true or false"}
        words = noun.get(self.type, "a text")
        if self.choices:
            words = " or ".join(map(str, self.choices))
        if self.least is not None:
            words += f" from {self.least:,} to {self.most:,}"
        words += f", a multiple of {self.multiple_of}" if self.multiple_of > 1 else ""
        return words + (f" ({self.unit})" if self.unit else "")

    def allows(self, value: object) -> bool:
        """Whether a file may give `value`."""
        if self.type == "bool":
            return isinstance(value, bool)
        if self.type == "str":
            return _is_text(value) and (not self.choices or value in self.choices)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if isinstance(value, float) and (self.type == "int" or not math.isfinite(value)):
            return False
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (not self.choices or value in self.choices)
            and (self.multiple_of == 1 or value % self.multiple_of == 0)
        )


def _is_text(value: object) -> bool:
    """Whether this is a text that a line can show."""
    is_line = isinstance(value, str) and value.isprintable() and bool(value.strip())
    return is_line and len(str(value)) <= _LONGEST_TEXT


def _key(
    doc: str,
    unit: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
    choices: tuple[int | str, ...] = (),
    multiple_of: int = 1,
    default: Default | None = None,
) -> Any:
    limits = {"least": least, "most": most, "choices": choices, "multiple_of": multiple_of}
    return field(metadata={"doc": doc, "unit": unit, "default": default, **limits})


# Upper bounds on numbers: far above those of any GPU built, but low enough that a slip of the
# pen, such as a latency in picoseconds, cannot make the clock run for hours.


def _count(doc: str, unit: str, *, most: int, **limits: Any) -> Any:
    return _key(doc, unit, **{"least": 1, "most": most, **limits})


def _bytes(doc: str, *, most: int, **limits: Any) -> Any:
    return _key(doc, "bytes", **{"least": 1, "most": most, **limits})


def _latency(
    doc: str, unit: str = "cycles", least: float = 0, default: Default | None = None
) -> Any:
    # At most: a hundred times that of loaded DRAM.
    return _key(doc, unit, least=least, most=100_000, default=default)


def _interval(
    doc: str, unit: str = "cycles per warp instruction", default: Default | None = None
) -> Any:
    # At least: no unit serves a hundred warps in a cycle. At most: twenty times the slowest,
    # atomics of an 8800 GTX.
    return _key(doc, unit, least=0.01, most=10_000, default=default)


def _gbps(doc: str, default: Default | None = None) -> Any:
    # At least: a thousandth of a serial line's. At most: a hundred times the L2 of an H200.
    return _key(doc, "GB/s", least=0.001, most=1_000_000, default=default)


# Defaults for numbers measured on an H200 alone: the same value, or in proportion to another key.


def _as_measured(value: Value, how: str = "") -> Default:
    return Default(lambda _: value, f"an H200's value{how}")


_calibrated = partial(_as_measured, how=" (gpusim validate calibrate)")
_benchmarked = partial(_as_measured, how=" (microbenchmark on an H200, CUDA 13.0)")


def _in_proportion(factor: float, key: str) -> Default:
    return Default(lambda values: factor * values[key], f"an H200's ratio to {key}, {factor:g}")


def _l2_bytes_per_cycle(values: Mapping[str, Any]) -> float:
    return float(values["bandwidth.l2_gbps"] * 1000 / values["gpu.sm_clock_mhz"])


def _one_for_l2_bytes(per_cycle: int) -> Default:
    return Default(
        lambda values: float(max(1, round(_l2_bytes_per_cycle(values) / per_cycle))),
        f"an H200's ratio: one for {per_cycle} bytes per cycle of bandwidth.l2_gbps",
    )


# Multiplications and additions of halves by the tensor cores of an SM in a cycle, as white papers
# give them, by compute capability: summed in half precision, and in single. A scheduler has a
# quarter of them.
_TENSOR_RATES = {"7.0": (512, 512), "7.5": (512, 256), "8.0": (1024, 1024), "9.0": (1352, 1352)}
_TENSOR_RATES |= dict.fromkeys(("8.6", "8.9"), (512, 256))


def _of_white_paper(which: int) -> Default:
    """Return the default of a product of 16 by 8 by 16: GeForce GPUs halve the rate for single."""

    def rule(values: Mapping[str, Any]) -> float:
        rates = _TENSOR_RATES.get(values["gpu.compute_capability"], (512, 512))
        return 16 * 8 * 16 / (rates[which] / 4)

    return Default(rule, "the architecture's white paper: additions and multiplications a cycle")


def _of_doubles(values: Mapping[str, Any]) -> float:
    """Return 16 cycles for 8 by 8 by 4 where there are units for it, else those of 256 DFMA."""
    if values["gpu.compute_capability"] in ("8.0", "9.0"):
        return 16.0
    return float(8 * values["interval_cycles.fp64"])


def _has_l2_parts(values: Mapping[str, Any]) -> bool:
    return values["gpu.compute_capability"] in ("8.0", "9.0")


@dataclass(frozen=True)
class Gpu:
    """The whole chip and its memory."""

    name: str = _key("product name")
    compute_capability: str = _key("generation of the instruction set, such as 9.0")
    sms: int = _count("streaming multiprocessors", "SMs", most=1024)  # the largest have 150
    sm_clock_mhz: float = _key(
        "SM clock under load, used for predictions",
        "MHz",
        least=1,
        most=100_000,  # light travels 3 mm in this period
    )
    memory_bytes: int = _bytes("global memory", most=2**50)  # thousands of times the largest


@dataclass(frozen=True)
class Sm:
    """The capacity and issue rate of one streaming multiprocessor (SM)."""

    schedulers: int = _count("warp schedulers of an SM", "schedulers", most=16)  # four are most
    issue_width: int = _count(
        "instructions that a scheduler issues in a cycle, from one warp",
        "instructions per cycle",
        most=4,  # two were the most, of Kepler
    )
    policy: str = _key(
        "order in which a scheduler issues its eligible warps",
        choices=("greedy-then-oldest", "greedy-then-youngest", "loose-round-robin"),
    )
    max_threads: int = _count(
        "threads resident on an SM",
        "threads",
        multiple_of=WARP_SIZE,
        most=8192,  # four times the most
    )
    max_blocks: int = _count("blocks resident on an SM", "blocks", most=256)  # 32 are most
    registers: int = _count("32-bit registers of an SM", "registers", most=2**20)  # 65,536
    register_unit: int = _count(
        "allocation unit of a warp's registers",
        "registers",
        most=8160,  # all that a warp's 32 lanes can name
    )
    shared_bytes: int = _bytes(
        "shared memory of an SM, for all its blocks",
        most=2**24,  # seventy times the largest
    )
    shared_reserved_bytes: int = _bytes(
        "shared memory of each block reserved for the system", least=0, most=2**20
    )
    shared_unit_bytes: int = _bytes("allocation unit of a block's shared memory", most=2**20)


@dataclass(frozen=True)
class Latency:
    """Cycles from issue until a dependent instruction may issue."""

    alu: float = _latency("integer addition, logic, comparison, move", least=1)
    fma: float = _latency("floating-point add, multiply, multiply-add of 32 bits", least=1)
    imad: float = _latency("integer multiply and multiply-add", least=1)
    imad_wide: float = _latency(
        "integer multiplication with a result of 64 bits", least=1, default=_calibrated(9)
    )
    fp64: float = _latency("floating point of 64 bits", least=1)
    predicate: float = _latency("a comparison, until its predicate may be used", least=1)
    other_pipe: float = _latency("added where the result goes to another pipe")
    xu: float = _latency("special functions and conversions", least=1)
    uniform: float = _latency("the uniform datapath; the ALU where there is none", least=1)
    uniform_constant: float = _latency(
        "a constant loaded by ULDC, in its cache",
        least=1,
        default=_in_proportion(0.5, "latency_cycles.uniform"),
    )
    constant: float = _latency("a constant loaded by LDC, in its cache", least=1)
    constant_l15: float = _latency(
        "added to the latency of a constant on a hit in the L1.5", default=_as_measured(70.0)
    )
    special_register: float = _latency("S2R: thread index and the like", least=1)
    tensor: float = _latency(
        "a matrix product with four registers of A, such as 16 by 8 by 16 halves",
        least=1,
        default=Default(lambda _: 24.0, "an H200's value, as ptxas's stall counts for 8.0 to 8.9"),
    )
    tensor_register: float = _latency(
        "a matrix product: saved for each register of A below four",
        "cycles per register",
        default=_as_measured(3.4),
    )
    tensor_fp64: float = _latency(
        "a matrix product of doubles, beyond the occupancy of its unit by 16 rows",
        default=_as_measured(18.0),
    )
    warpgroup_product: float = _latency(
        "a warpgroup's matrix product (wgmma) and the wait for it, beyond its unit's occupancy",
        default=_as_measured(45.0),
    )
    cluster_barrier: float = _latency(
        "a cluster's barrier after its last arrival, beyond a block's", default=_calibrated(67)
    )
    peer_load: float = _latency(
        "a load of the shared memory of another block of the cluster",
        least=1,
        default=_calibrated(205),
    )
    peer_arrival: float = _latency(
        "from an arrival, or bytes with their count, until they are at another block's mbarrier",
        default=_calibrated(145),
    )
    multicast: float = _latency(
        "added to a bulk copy to several blocks of the cluster", default=_calibrated(265)
    )
    bulk_load: float = _latency(
        "a bulk copy to shared memory, beyond a global load of its bytes", default=_calibrated(10)
    )
    phase_noticed: float = _latency(
        "from the end of an mbarrier's phase until a warp that waits for it goes on",
        default=_calibrated(10),
    )
    bulk_store: float = _latency(
        "a bulk copy to global memory until it has been read, beyond its bytes",
        default=_calibrated(30),
    )
    box_load: float = _latency(
        "added to a bulk copy to shared memory by a tensor map", default=_calibrated(25)
    )
    box_store: float = _latency(
        "added to a bulk copy to global memory by a tensor map", default=_calibrated(55)
    )
    shared_load: float = _latency("a shared-memory load of one wavefront", least=1)
    shared_wavefront: float = _latency(
        "added by each wavefront of a shared-memory load beyond the first", "cycles per wavefront"
    )
    shuffle: float = _latency("a shuffle between the lanes of a warp", least=1)
    vote: float = _latency("ballot, any, all", least=1)
    l1: float = _latency("a global load that hits L1", least=1)
    l2: float = _latency("a global load that hits L2", least=1)
    dram: float = _latency("a global load from idle DRAM, seen from the SM: the mean", least=1)
    dram_least: float = _latency("a global load from idle DRAM: the shortest", least=1)
    dram_deviation: float = _latency("standard deviation of a global load from idle DRAM")
    barrier: float = _latency("a barrier after its last warp has arrived: the fixed part")
    barrier_per_warp: float = _latency(
        "a barrier: added for each warp of the block", "cycles per warp"
    )
    barrier_per_queued_warp: float = _latency(
        "a barrier: added for each warp while other blocks' warps fill the schedulers' queues",
        "cycles per warp",
        default=Default(
            lambda values: values["latency_cycles.barrier_per_warp"] / 2,
            "an H200's ratio to latency_cycles.barrier_per_warp, 0.5",
        ),
    )
    branch: float = _latency("lost to the warp after a taken branch", default=_calibrated(9))
    control: float = _latency("lost to the warp after a branch not taken, and the like")
    block_start: float = _latency(
        "from a block's launch to its first instruction", default=_calibrated(181)
    )
    warp_start: float = _latency(
        "between the first instructions of a block's warps", default=_calibrated(2.16)
    )
    cold_start: float = _latency(
        "added to the first special registers and arguments of a launch", default=_calibrated(199)
    )
    launch_spread: float = _latency("from a launch's first block to the first of a typical SM")
    launch_last: float = _latency(
        "from a launch's first block to the first of the last SM, where blocks load and store",
        default=_in_proportion(5.4, "latency_cycles.launch_spread"),
    )
    block_end: float = _latency(
        "from a block's last exit until its place is free", default=_calibrated(102)
    )
    shared_atomic: float = _latency("an atomic on shared memory without contention", least=1)
    global_atomic: float = _latency("an atomic on global memory that returns a value", least=1)
    l2_far: float = _latency(
        "added to latency_cycles.l2 for a line in the far partition of the L2",
        default=Default(
            lambda values: 0.62 * values["latency_cycles.l2"] if _has_l2_parts(values) else 0.0,
            "an H200's ratio to latency_cycles.l2, 0.62, if the L2 has two parts",
        ),
    )
    l2_places: float = _latency(
        "largest deviation from latency_cycles.l2 by the address of a line",
        default=_as_measured(30.0),
    )
    fence: float = _latency(
        "a device-scope fence right after another one",
        default=_in_proportion(0.7, "latency_cycles.global_atomic"),
    )
    fence_of_one_line: float = _latency(
        "a device-scope fence after accesses to one line: the mean",
        default=_in_proportion(1.3, "latency_cycles.global_atomic"),
    )
    fence_of_many_lines: float = _latency(
        "a device-scope fence after accesses to many lines",
        default=_in_proportion(1.65, "latency_cycles.global_atomic"),
    )
    fence_overlap: float = _latency(
        "overlap of successive fences of an SM",
        default=_in_proportion(0.6, "latency_cycles.global_atomic"),
    )
    flag: float = _latency(
        "from the store of a flag until a polling warp of another SM reads it",
        default=_in_proportion(2.1, "latency_cycles.l2"),
    )
    fenced_flag: float = _latency(
        "from the fence before such a store until the polling warp reads the flag",
        default=_in_proportion(3.2, "latency_cycles.global_atomic"),
    )
    last_store: float = _latency(
        "added to the end of a launch by its last store",
        default=_in_proportion(1.25, "latency_cycles.l2"),
    )


@dataclass(frozen=True)
class Interval:
    """Cycles for which one warp instruction occupies its execution unit."""

    alu: float = _interval("ALU of a scheduler")
    fma: float = _interval("FMA pipe of a scheduler: 32-bit floating point")
    imad: float = _interval("integer multiply and multiply-add of a scheduler")
    imad_wide: float = _interval(
        "integer multiplication with 64-bit results, per scheduler", default=_calibrated(4)
    )
    fp64: float = _interval("64-bit floating point, per scheduler")
    xu: float = _interval("special functions and conversions, per scheduler")
    xu_dispatch: float = _interval(
        "the scheduler itself, by a special function", default=_calibrated(1.0)
    )
    imad_wide_dispatch: float = _interval(
        "the scheduler itself, by a wide multiplication", default=_calibrated(3.46)
    )
    exit: float = _interval("the scheduler itself, by a warp that ends", default=_as_measured(6.0))
    tensor: float = _interval(
        "tensor core of a scheduler: a matrix product with four registers of A, with sums in half "
        "precision or of integers; in proportion to its registers of A",
        default=_of_white_paper(0),
    )
    tensor_single: float = _interval(
        "tensor core of a scheduler: likewise, with sums in single precision",
        default=_of_white_paper(1),
    )
    tensor_least: float = _interval(
        "tensor core of a scheduler: any matrix product, at least", default=_as_measured(4.1)
    )
    tensor_fp64: float = _interval(
        "tensor core of a scheduler: a matrix product of doubles, for each 4 of k",
        default=Default(_of_doubles, "white papers: 16 cycles, or as the DFMA of its products"),
    )
    warpgroup_column: float = _interval(
        "tensor core of a scheduler: a warpgroup's matrix product (wgmma), for each column",
        default=_as_measured(0.5),
    )
    uniform: float = _interval("uniform datapath of a scheduler; the ALU where there is none")
    adu: float = _interval("special registers and constants, per SM", default=_calibrated(2))
    lsu_scheduler: float = _interval(
        "port of a scheduler to memory, by a load that reads one register: its address"
    )
    store_scheduler: float = _interval(
        "port of a scheduler to memory, by a store that reads two registers; a further one costs "
        "the difference",
        default=_calibrated(4),
    )
    lsu_sm: float = _interval("memory requests of the whole SM")
    l1_miss_line: float = _interval(
        "the SM itself, by the L1 misses of a load, one line after the other",
        "cycles per line",
        default=_as_measured(1.0),
    )
    shared_wavefront: float = _interval(
        "data stage of shared memory, whole SM", "cycles per wavefront"
    )
    shared_store_conflict: float = _interval(
        "data stage of shared memory: each excessive wavefront of a store",
        "cycles per wavefront",
        default=_calibrated(1),
    )
    store_packet: float = _interval(
        "global stores, whole SM: each 128-byte line, and each sector of it",
        "cycles per packet",
        default=_calibrated(1),
    )
    barrier: float = _interval(
        "data stage of shared memory, by a barrier, at least",
        "cycles per barrier",
        default=_calibrated(4.7),
    )
    barrier_per_warp: float = _interval(
        "data stage of shared memory, by a barrier, for each warp",
        "cycles per warp",
        default=_calibrated(0.78),
    )
    shuffle: float = _interval("shuffles of the whole SM")
    peer_sector: float = _interval(
        "network between the SMs of a cluster: 32 bytes",
        "cycles per sector",
        default=_calibrated(1.54),
    )
    peer_atomic_sector: float = _interval(
        "network between the SMs of a cluster: atomics on 32 bytes",
        "cycles per sector",
        default=_calibrated(3.5),
    )
    bulk_load: float = _interval(
        "engine of bulk copies: a copy to shared memory, at least",
        "cycles per copy",
        default=_calibrated(55),
    )
    bulk_store: float = _interval(
        "engine of bulk copies: a copy to global memory, at least",
        "cycles per copy",
        default=_calibrated(16),
    )
    box_line: float = _interval(
        "engine of bulk copies: a row of a box, at least",
        "cycles per row",
        default=_calibrated(1),
    )
    mbarrier_arrival: float = _interval(
        "data stage of shared memory, by a warp's arrival at an mbarrier",
        default=_calibrated(5.4),
    )
    shared_atomic_pass: float = _interval(
        "shared-memory atomics: each lane that shares an address with another", "cycles per pass"
    )
    block_launch: float = _interval(
        "between two block launches on one SM", "cycles per block", default=_calibrated(25.1)
    )
    block_completion: float = _interval(
        "between two blocks' ends on one SM", "cycles per block", default=_calibrated(157)
    )
    global_atomic_same_address: float = _interval(
        "integer atomics on one address, serialised in the L2, after the reduction within a warp",
        "cycles per operation",
    )
    global_atomic_float_same_address: float = _interval(
        "floating-point atomics on one address, serialised in the L2", "cycles per lane"
    )
    store_joined: float = _key(
        "fraction of stores combined with the one before, to the same sectors",
        "stores",
        least=0,
        most=1,
        default=Default(
            lambda _: 0.4, "an H200's value, by sectors that leave its L1 in Nsight Compute"
        ),
    )
    constant_lookup: float = _interval(
        "constants of a warp, serialised", "cycles per constant", default=_as_measured(11.0)
    )
    global_atomic_whole_sector: float = _key(
        "cost of atomics on a whole sector, relative to those on a part of it",
        least=0.01,
        most=100,
        default=_as_measured(0.8),
    )
    global_atomic_read: float = _key(
        "cost of reading a line while atomics saturate the L2, relative to an atomic",
        least=0,
        most=100,
        default=_as_measured(0.68),
    )
    global_atomic_miss: float = _key(
        "the same, added by each half line that misses in the L2",
        least=0,
        most=100,
        default=_as_measured(0.69),
    )
    shared_swap_pass: float = _interval(
        "compare-and-swap in shared memory: each lane that shares an address with another",
        "cycles per pass",
        default=_in_proportion(2.0, "interval_cycles.shared_atomic_pass"),
    )
    instruction_line: float = _interval(
        "128 bytes of straight code out of the L1.5, of a warp",
        "cycles per line",
        default=_as_measured(17.7),
    )
    instruction_line_l2: float = _interval(
        "128 bytes of straight code out of the L2, of a warp",
        "cycles per line",
        default=_as_measured(46.0),
    )
    instruction_line_dram: float = _interval(
        "128 bytes of straight code out of DRAM, of a warp",
        "cycles per line",
        default=_as_measured(86.6),
    )


@dataclass(frozen=True)
class Bandwidth:
    """Bytes that move between DRAM, L2 and the SMs."""

    dram_peak_gbps: float = _gbps("DRAM bandwidth of the data sheet")
    dram_gbps: float = _gbps("DRAM bandwidth achieved by reads")
    l2_gbps: float = _gbps("L2 bandwidth achieved by all SMs")
    l2_request_bytes: float = _key(
        "least L2 bandwidth used by a request for a line",
        "bytes",
        least=32,
        most=4096,  # 32 lines
        default=_benchmarked(56),
    )
    l2_to_sm_bytes_per_cycle: float = _key(
        "L2 bandwidth of one SM",
        "bytes per cycle",
        least=0.01,
        most=10_000,  # eighty times an H200's
    )
    bulk_load_bytes_per_cycle: float = _key(
        "an SM's bulk copies to shared memory",
        "bytes per cycle",
        least=0.01,
        most=10_000,
        default=_calibrated(100),
    )
    bulk_store_bytes_per_cycle: float = _key(
        "an SM's bulk copies to global memory",
        "bytes per cycle",
        least=0.01,
        most=10_000,
        default=_calibrated(32),
    )
    l2_stores_per_cycle: float = _key(
        "store throughput of the L2: packets are 128-byte lines and their sectors",
        "packets per cycle",
        least=0.01,
        most=10_000,  # a hundred times an H200's
    )
    l2_whole_stores_per_cycle: float = _key(
        "the same for whole sectors",
        "packets per cycle",
        least=0.01,
        most=10_000,
        default=_in_proportion(1.2, "bandwidth.l2_stores_per_cycle"),
    )
    l2_store_part_factor: float = _key(
        "cost of a store in its L2 partition, relative to its transfer between the partitions",
        least=0,
        most=100,
        default=_as_measured(0.68),
    )
    l2_atomic_units: float = _key(
        "concurrent atomics of the L2, on different sectors",
        "units",
        least=1,
        most=10_000,
        default=_one_for_l2_bytes(59),
    )
    l2_atomic_answers: float = _key(
        "the same for atomics that return a value",
        "units",
        least=1,
        most=10_000,
        default=_one_for_l2_bytes(82),
    )
    l2_atomic_places_a_unit: float = _key(
        "256-byte ranges served by each unit of atomics, where they are few",
        least=1,
        most=32,
        default=_as_measured(2),
    )
    l2_atomics_in_a_kilobyte: float = _key(
        "concurrent atomics of the L2 within 1 KB: the mean over addresses",
        least=1,
        most=8,
        default=_as_measured(2.8),
    )
    dram_grain_bytes: int = _key("bytes of a DRAM burst", "bytes", choices=(32, 64))
    dram_write_factor: float = _key(
        "cost of a written byte beside reads, relative to a read byte",
        least=1,
        most=1000,  # flash memory is not so uneven
        default=_benchmarked(1.26),
    )
    dram_write_alone_factor: float = _key(
        "the same without reads", least=1, most=1000, default=_as_measured(1.05)
    )
    dram_scattered_gbps: float = _gbps(
        "DRAM bandwidth for single bursts (bandwidth.dram_grain_bytes) at random addresses",
        default=_in_proportion(0.6, "bandwidth.dram_gbps"),
    )
    dram_scattered_writes_gbps: float = _gbps(
        "the same of writes: a sector written alone takes a burst",
        default=_in_proportion(0.415, "bandwidth.dram_gbps"),
    )
    dram_scattered_lines_gbps: float = _gbps(
        "DRAM bandwidth for single 128-byte lines at random addresses",
        default=_in_proportion(0.93, "bandwidth.dram_gbps"),
    )
    l2_latency_growth: float = _key(
        "g in: latency of the loaded L2 = idle latency * (1 + g u^3) at utilisation u",
        least=0,
        most=10,  # slower than the idle DRAM behind it
        default=_as_measured(0.7),
    )
    dram_latency_growth: float = _key(
        "g in: loaded latency = idle latency * (1 + g u^3 + h w) at utilisation u",
        least=0,
        most=1000,  # as slow as a disk
        default=_calibrated(0.49),
    )
    dram_latency_growth_by_writes: float = _key(
        "h in: loaded latency = idle latency * (1 + g u^3 + h w), w the part of u by writes",
        least=0,
        most=1000,
        default=_benchmarked(0.91),
    )


def _part(doc: str, value: float) -> Any:
    # At most: a loop eight times as long as its cache finds nothing there.
    return _key(doc, least=0.01, most=8, default=_as_measured(value))


def _part_of_before(doc: str, with_parts: float, without: float) -> Any:
    return _key(
        doc,
        least=0.01,
        most=8,
        default=Default(
            lambda values: with_parts if _has_l2_parts(values) else without,
            "an H200's value if the L2 has parts, else that of a cyclic sweep",
        ),
    )


@dataclass(frozen=True)
class Capacity:
    """Sizes of the caches."""

    l1_bytes: int = _bytes("L1 of an SM with blocks without shared memory", least=0, most=2**30)
    l1_caches_global: bool = _key("whether ordinary global loads are kept in L1")
    l2_bytes: int = _bytes("L2 of the GPU", least=0, most=2**40)
    l2_written_fraction: float = _key(
        "fraction of the L2 that holds modified lines before they are written back",
        least=0,
        most=1,
        default=Default(
            lambda _: 0.43, "an H200's value: of 28 to 96 MB stored it writes back all but 27"
        ),
    )
    l1_without_lines_bytes: int = _bytes(
        "L1 memory that holds no lines, beside shared memory",
        least=0,
        most=2**30,
        default=_as_measured(8192),
    )
    l1_kept_fraction: float = _part(
        "largest working set of a cyclic sweep that always hits, in L1 sizes", 0.97
    )
    l1_lost_fraction: float = _part(
        "smallest working set of a cyclic sweep that always misses, in L1 sizes", 1.25
    )
    l1_random_kept_fraction: float = _part(
        "largest working set of random accesses that always hits, in L1 sizes", 0.5
    )
    l1_random_lost_fraction: float = _part(
        "smallest working set of random accesses that always misses, in L1 sizes", 1.5
    )
    l2_kept_fraction: float = _part(
        "largest working set of a cyclic sweep that always hits, in L2 sizes", 0.75
    )
    l2_lost_fraction: float = _part(
        "smallest working set of a cyclic sweep that always misses, in L2 sizes", 0.91
    )
    l2_warm_kept_fraction: float = _part_of_before(
        "largest footprint of the previous launch that always hits, in L2 sizes", 0.56, 0.75
    )
    l2_warm_lost_fraction: float = _part_of_before(
        "smallest footprint of the previous launch that always misses, in L2 sizes", 0.84, 0.91
    )
    l2_parts: int = _count(
        "L2 partitions, each with copies of the lines read by its SMs",
        "parts",
        most=16,
        default=Default(
            lambda values: 2 if _has_l2_parts(values) else 1,
            "white papers: two in an A100 and an H100; one is assumed for others",
        ),
    )
    l2_far_fraction: float = _key(
        "fraction of loads of another SM's lines that hit only in the far partition",
        least=0,
        most=1,
        default=_as_measured(0.24),
    )
    l2_far_touches: float = _key(
        "loads of a line after which that fraction has fallen to 1/e",
        "loads",
        least=0.01,
        most=1000,
        default=_as_measured(2.3),
    )
    constant_bytes: int = _bytes(
        "working set of constants that always hits", most=2**24, default=_as_measured(2048)
    )
    constant_piece_bytes: int = _bytes(
        "bytes of a constant fill", most=2**24, multiple_of=64, default=_as_measured(256)
    )
    instruction_bytes: int = _bytes(
        "largest loop without instruction-fetch stalls", most=2**24, default=_as_measured(32768)
    )
    l15_bytes: int = _bytes(
        "L1.5 of an SM, of instructions and constants", most=2**24, default=_as_measured(131072)
    )


def _by_blocks(doc: str, unit: str, blocks: int, value: float, most: float) -> Any:
    doc = f"clusters of {blocks} blocks: {doc}"
    return _key(doc, unit, least=0, most=most, default=_calibrated(value))


def for_cluster(blocks: int, by_size: Sequence[float], without: float) -> float:
    """Return the number for clusters of so many blocks, of those by CLUSTER_SIZES."""
    if blocks == 1:
        return without
    return next(n for size, n in zip(CLUSTER_SIZES, by_size, strict=True) if size >= blocks)


_fraction = partial(_by_blocks, "SMs that hold them, of all", "", most=2)
_turn = partial(
    _by_blocks,
    "from the end of an SM's block to its next one's start, beyond blocks without clusters",
    "cycles",
    most=100_000,
)
_launch = partial(
    _by_blocks,
    "time between block launches, relative to interval_cycles.block_launch",
    "",
    most=1000,
)


@dataclass(frozen=True)
class Cluster:
    """Thread block clusters, by their number of blocks."""

    fraction_2: float = _fraction(2, 1.0)
    fraction_4: float = _fraction(4, 0.939)
    fraction_8: float = _fraction(8, 0.939)
    fraction_16: float = _fraction(16, 0.879)
    turn_2: float = _turn(2, 67)
    turn_4: float = _turn(4, 367)
    turn_8: float = _turn(8, 367)
    turn_16: float = _turn(16, 437)
    launch_2: float = _launch(2, 1.48)
    launch_4: float = _launch(4, 1.24)
    launch_8: float = _launch(8, 1.1)
    launch_16: float = _launch(16, 1.06)


@dataclass(frozen=True)
class Queue:
    """Sizes of queues: beyond them a warp has to wait."""

    lsu_depth: int = _count(
        "memory instructions buffered by a scheduler before its warps stall",
        "instructions",
        most=1024,  # one for every warp and register there could be
    )
    load_depth: int = _count(
        "global loads of an SM in flight: L1 misses",
        "instructions",
        most=65536,
        default=_as_measured(384),
    )
    store_depth: int = _count(
        "global stores of an SM in flight to the L2",
        "instructions",
        most=4096,
        default=_calibrated(38),
    )
    atomic_depth: int = _count(
        "global atomics of an SM in flight to the L2, of 32 lanes",
        "instructions",
        most=4096,
        default=_as_measured(46),
    )


@dataclass(frozen=True)
class Host:
    """Launch overhead: the cost of a launch before and between kernels."""

    launch_overhead_us: float = _key(
        "an empty kernel after other work, between two events",
        "us",
        least=0,
        most=1_000_000,  # a second
    )
    pass_gap_us: float = _key(
        "between a kernel and the next of its stream", "us", least=0, most=1_000_000
    )
    dependent_spared_us: float = _key(
        "what programmatic dependence of the next kernel spares of host.pass_gap_us",
        "us",
        least=0,
        most=1_000_000,
        default=_calibrated(0.8),
    )
    triggered_spared_us: float = _key(
        "the same, if the kernel lets the next one start",
        "us",
        least=0,
        most=1_000_000,
        default=_calibrated(1.05),
    )


GROUPS: dict[str, type[Any]] = {
    "gpu": Gpu,
    "sm": Sm,
    "latency_cycles": Latency,
    "interval_cycles": Interval,
    "bandwidth": Bandwidth,
    "capacity": Capacity,
    "cluster": Cluster,
    "queue": Queue,
    "host": Host,
}

KEYS: dict[str, Key] = {
    f"{group}.{item.name}": Key(type=str(item.type), **item.metadata)
    for group, cls in GROUPS.items()
    for item in fields(cls)
}

# Combinations impossible in a GPU, though each number alone is possible: (key, rule, message).
_RULES: tuple[tuple[str, Callable[[Mapping[str, Any]], bool], str], ...] = (
    (
        "gpu.compute_capability",
        lambda v: v["gpu.compute_capability"] in SHARED_BYTES_PER_BLOCK,
        f"must be one of {', '.join(SHARED_BYTES_PER_BLOCK)}",
    ),
    (
        "bandwidth.dram_gbps",
        lambda v: v["bandwidth.dram_gbps"] <= v["bandwidth.dram_peak_gbps"],
        "must not be above bandwidth.dram_peak_gbps",
    ),
    (
        "latency_cycles.l1",
        lambda v: v["latency_cycles.l1"] <= v["latency_cycles.l2"],
        "must not be above latency_cycles.l2",
    ),
    (
        "latency_cycles.l2",
        lambda v: v["latency_cycles.l2"] <= v["latency_cycles.dram"],
        "must not be above latency_cycles.dram",
    ),
    (
        "sm.register_unit",
        lambda v: v["sm.registers"] % v["sm.register_unit"] == 0,
        "must divide sm.registers",
    ),
    (
        "sm.shared_reserved_bytes",
        lambda v: v["sm.shared_reserved_bytes"] < v["sm.shared_bytes"],
        "must be less than sm.shared_bytes",
    ),
)


@dataclass(frozen=True)
class Device:
    """A GPU: its numbers in groups, and the mechanisms that are switched off.

    `id` is the built-in name or the path it was read from; `facts` holds each number with
    unit, kind and source under "group.key". `changed` are the keys with replaced numbers,
    sorted.
    """

    id: str
    gpu: Gpu
    sm: Sm
    latency_cycles: Latency
    interval_cycles: Interval
    bandwidth: Bandwidth
    capacity: Capacity
    cluster: Cluster
    queue: Queue
    host: Host
    ablations: frozenset[str] = frozenset()
    changed: tuple[tuple[str, Value], ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The maker's name of the GPU."""
        return self.gpu.name

    @property
    def cc(self) -> ComputeCapability:
        """The GPU's compute capability."""
        return ComputeCapability.parse(self.gpu.compute_capability)

    def without(self, *mechanisms: str) -> Device:
        """Return this GPU with mechanisms of ABLATIONS switched off; DeviceError otherwise."""
        if not mechanisms:
            return self
        chosen = []
        for mechanism in mechanisms:
            name = mechanism.strip().lower().replace(" ", "-").replace("_", "-")
            if name not in ABLATIONS:
                raise DeviceError(
                    f"unknown mechanism {shown(mechanism)!r} in --without; known are "
                    f"{', '.join(ABLATIONS)}"
                    f"{did_you_mean(name, ABLATIONS)}"
                )
            chosen.append(name)
        return replace(self, ablations=self.ablations.union(chosen))

    def having(self, values: Mapping[str, Value]) -> Device:
        """Return this GPU with other numbers for keys of KEYS; DeviceError for impossible ones.

        Keys that follow from others by a rule follow the new ones.
        """
        if not values:
            return self
        mistakes = [_mistake(name, value) for name, value in values.items()]
        given = {name: fact for name, fact in self.facts.items() if not fact.is_by_rule}
        facts = given | {
            name: Fact(value, KEYS[name].unit, "estimated", "set for this prediction")
            for name, value in values.items()
            if name in KEYS
        }
        if not any(mistakes):
            facts = _with_rules(facts)
            mistakes = _impossible(facts)
        if any(mistakes):
            raise DeviceError(f"{self.name}: {'; '.join(filter(None, mistakes))}")
        changed = tuple(sorted({**dict(self.changed), **values}.items()))
        return replace(self, facts=facts, changed=changed, **_groups(facts))


def names() -> list[str]:
    """Return the names of the built-in devices, in order."""
    return list(_by_plain_name().values())


@cache
def _by_plain_name() -> dict[str, str]:
    """Return the names of the built-in devices by their plain forms: the folder is read once."""
    return {_plain(name): name for name in sorted(path.stem for path in _DIRECTORY.glob("*.toml"))}


def load(name_or_path: str | Path | Device) -> Device:
    """Return the device of a built-in name, or of a TOML file; DeviceError otherwise.

    Names are found in any case and with or without spaces, hyphens and the maker's words:
    "RTX 3060 Ti", "geforce-rtx-3060-ti" and "rtx3060ti" are one. A part of one name alone, such
    as "4090", is enough. A name that ends in .toml or holds a path separator is a file.
    """
    if isinstance(name_or_path, Device):
        return name_or_path
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or re.search(r"[/\\]|\.toml$", text.lower()):
        return _read(Path(text), text)
    by_plain = _by_plain_name()
    plain = _plain(text)
    within = [name for one, name in by_plain.items() if plain and plain in one]
    name = by_plain.get(plain) or (within[0] if len(within) == 1 else None)
    if name is None and within:
        raise DeviceError(f"{shown(text)!r} may be {' or '.join(within)}: choose one")
    if name is None:
        raise DeviceError(
            f"there is no device {shown(text)!r}; built in are {', '.join(by_plain.values())}, "
            "and a file of your own is given by its path, such as my-gpu.toml"
            f"{did_you_mean(_plain(text), by_plain.values())}"
        )
    return _built_in(name)


@cache
def _built_in(name: str) -> Device:
    return _read(_DIRECTORY / f"{name}.toml", name)


def _plain(name: str) -> str:
    """Return a name without case, punctuation and the maker's words."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return re.sub(r"^(nvidia)?(geforce|tesla|quadro)?", "", plain)


def _read(path: Path, name: str) -> Device:
    facts, mistakes = _checked(_tree(path))
    if mistakes:
        listed = mistakes[:_MOST_SHOWN]
        if len(mistakes) > len(listed):
            listed.append(f"and {len(mistakes) - len(listed)} more")
        lines = "".join(f"\n  {mistake}" for mistake in listed)
        number = "one mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise DeviceError(f"{shown(path)}: {number} in the device file{lines}")
    return Device(id=name, facts=facts, **_groups(facts))


def _tree(path: Path) -> dict[str, Any]:
    """Return the content of a device file, with the keys of the one that it is `like`."""
    tree = files.toml(path, DeviceError)
    if "like" not in tree:
        return tree
    like = tree.pop("like")
    if like not in names():
        raise DeviceError(
            f"{shown(path)}: like = {shown(repr(like))} is impossible: expected a name of "
            f"gpusim devices{did_you_mean(str(like), names())}"
        )
    base = _tree(_DIRECTORY / f"{like}.toml")
    for group, content in tree.items():
        both = isinstance(content, dict) and group in base
        base[group] = {**base[group], **content} if both else content
    return base


def _groups(facts: Mapping[str, Fact]) -> dict[str, Any]:
    """Return the groups of a device's numbers."""
    return {
        group: cls(**{item.name: facts[f"{group}.{item.name}"].value for item in fields(cls)})
        for group, cls in GROUPS.items()
    }


def _mistake(name: str, value: Value) -> str:
    """Return the mistake in giving a key another number, "" if there is none."""
    if name not in KEYS:
        near = _elsewhere(name.rpartition(".")[2]) or did_you_mean(name, KEYS)
        near = near or "; gpusim devices h200 shows all of them"
        return f"{shown(name)} is not a key{near}"
    if not KEYS[name].allows(value):
        return f"{name} = {shown(repr(value))} is impossible: expected {KEYS[name].expected}"
    return ""


def _with_rules(given: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return the facts of all keys: given values, and defaults by rule."""
    values = {dotted: fact.value for dotted, fact in given.items()}
    return {
        dotted: given[dotted]
        if key.default is None or dotted in given
        else key.default.fact(key.unit, values)
        for dotted, key in KEYS.items()
    }


def _impossible(facts: Mapping[str, Fact]) -> list[str]:
    """Return the combinations of numbers impossible in one GPU."""
    values = {dotted: fact.value for dotted, fact in facts.items()}
    return [
        f"{dotted} = {values[dotted]!r} is impossible: it {must}"
        for dotted, holds, must in _RULES
        if not holds(values)
    ]


def _checked(tree: Mapping[str, Any]) -> tuple[dict[str, Fact], list[str]]:
    """Return the facts of a parsed file, in the order of KEYS, and all of its mistakes."""
    mistakes = []
    for group, content in tree.items():
        if group not in GROUPS:
            mistakes.append(f"[{shown(group)}] is not a group{did_you_mean(group, GROUPS)}")
        elif not isinstance(content, dict):
            mistakes.append(f"{group} must be a group of keys, begun by [{group}]")
        else:
            known = [item.name for item in fields(GROUPS[group])]
            mistakes += [
                f"{group}.{shown(key)} is not a key{_elsewhere(key) or did_you_mean(key, known)}"
                for key in content
                if key not in known
            ]
    for group, cls in GROUPS.items():
        if group not in tree:
            needed = [item.name for item in fields(cls) if item.metadata["default"] is None]
            if needed:
                mistakes.append(f"[{group}] is missing, with its keys {', '.join(needed)}")
    facts = {}
    for dotted, key in KEYS.items():
        group, _, name = dotted.partition(".")
        content = tree.get(group)
        if not isinstance(content, dict):
            continue
        if name not in content and key.default is not None:
            continue
        if name not in content:
            mistakes.append(f"{dotted} is missing: {key.doc}; expected {key.expected}")
            continue
        wrong = _leaf_mistakes(content[name], key)
        mistakes += [f"{dotted} {mistake}" for mistake in wrong]
        if not wrong:
            leaf = content[name]
            facts[dotted] = Fact(leaf["value"], key.unit, leaf["kind"], leaf["source"])
    if not mistakes:
        facts = _with_rules(facts)
        mistakes = _impossible(facts)
    return facts, mistakes


def _elsewhere(key: str) -> str:
    """Name the group of a key given in another one."""
    homes = [dotted for dotted in KEYS if dotted.partition(".")[2] == key]
    return f"; did you mean {' or '.join(homes)}?" if homes else ""


def _leaf_mistakes(leaf: object, key: Key) -> list[str]:
    """Return the mistakes in one key's entry."""
    if not isinstance(leaf, dict):
        return [f"must be written {_LEAF_FORM}, not {shown(repr(leaf))}"]
    mistakes = [
        f"has {shown(part)!r}, which is not one of value, kind and source"
        f"{did_you_mean(part, _LEAF)}"
        for part in leaf
        if part not in _LEAF
    ]
    mistakes += [f"has no {part}: write {_LEAF_FORM}" for part in _LEAF if part not in leaf]
    if "value" in leaf and not key.allows(leaf["value"]):
        mistakes.append(f"= {shown(repr(leaf['value']))} is impossible: expected {key.expected}")
    if "kind" in leaf and leaf["kind"] not in list(KINDS):
        hint = did_you_mean(str(leaf["kind"]), KINDS)
        mistakes.append(f"has kind {shown(repr(leaf['kind']))}: expected {', '.join(KINDS)}{hint}")
    if "source" in leaf and not _is_text(leaf["source"]):
        mistakes.append("has an empty source, or none on one line: name the origin of the number")
    return mistakes
