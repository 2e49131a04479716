"""A launch: grid, block and shared memory, checked against the limits of GPUs.

Arguments are the launch's too; their meaning in a kernel is defined by the compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpusim.errors import LaunchError

Dim3 = tuple[int, int, int]

MAX_THREADS_PER_BLOCK = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
WARP_SIZE = 32

# Shared memory that one block may have, bytes, by compute capability (CUDA C++ Programming
# Guide, table "Technical specifications per compute capability").
SHARED_BYTES_PER_BLOCK: dict[str, int] = {
    "1.0": 16384, "1.1": 16384, "1.2": 16384, "1.3": 16384,
    "2.0": 49152, "2.1": 49152, "3.0": 49152, "3.5": 49152, "3.7": 49152,
    "5.0": 49152, "5.2": 49152, "5.3": 49152, "6.0": 49152, "6.1": 49152, "6.2": 49152,
    "7.0": 98304, "7.2": 98304, "7.5": 65536, "8.0": 166912, "8.6": 101376, "8.7": 166912,
    "8.9": 101376, "9.0": 232448, "10.0": 232448, "12.0": 101376,
}  # fmt: skip


# 32-bit registers of a block, from compute capability 3.0 on; a warp is given whole units, and its
# place in one of four equal parts (NVIDIA's occupancy calculator).
REGISTERS_PER_BLOCK, REGISTER_UNIT, PARTS = 65536, 256, 4
# Blocks of a cluster: up to 8 on any GPU, up to 16 where a kernel allows sizes that are not
# portable (CUDA C++ Programming Guide, thread block clusters).
MOST_OF_CLUSTER = 16
NO_CLUSTER = (1, 1, 1)


@dataclass(frozen=True, order=True)
class ComputeCapability:
    """A GPU's generation, such as 9.0."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str | ComputeCapability) -> ComputeCapability:
        """Return the capability written as "9.0" (or "90", "sm_90"); LaunchError otherwise."""
        if isinstance(text, ComputeCapability):
            return text
        plain = str(text).removeprefix("sm_")
        if "." not in plain and len(plain) >= 2:
            plain = f"{plain[:-1]}.{plain[-1]}"
        if plain not in SHARED_BYTES_PER_BLOCK:
            known = ", ".join(SHARED_BYTES_PER_BLOCK)
            raise LaunchError(f"compute capability {text!r} is not known; known are {known}")
        major, minor = plain.split(".")
        return cls(int(major), int(minor))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def target(self) -> str:
        """The compilers' name for its machine code, such as sm_86; from 9.0 on with all it has.

        Code for sm_90a runs only on 9.0, and adds wgmma and setmaxnreg to sm_90.
        """
        return f"sm_{self.major}{self.minor}{'a' if self.major >= 9 else ''}"

    @property
    def shared_bytes_per_block(self) -> int:
        """Largest shared memory of a block, in bytes, after opting in."""
        return SHARED_BYTES_PER_BLOCK[str(self)]

    @property
    def max_threads_per_block(self) -> int:
        """512 for compute capability 1.x, else 1024."""
        return 512 if self.major == 1 else MAX_THREADS_PER_BLOCK


def whole_number(value: Any, name: str, least: int | None = None) -> int:
    """Return `value` as an integer; LaunchError where it is none, or below `least`."""
    try:
        number = int(value.__index__())
    except (AttributeError, TypeError):
        raise LaunchError(f"{name} takes whole numbers, not {value!r}") from None
    if least is not None and number < least:
        raise LaunchError(f"{name} must be at least {least}, not {value!r}")
    return number


def dim3(value: int | Sequence[int], name: str) -> Dim3:
    """Return `value` as (x, y, z), filled up with ones; LaunchError where it is not a size."""
    parts = tuple(value) if isinstance(value, Sequence) else (value,)
    if not 1 <= len(parts) <= 3:
        raise LaunchError(f"{name} takes one to three sizes, not {value!r}")
    sizes = []
    for part in parts:
        size = whole_number(part, name)
        if size < 1:
            raise LaunchError(f"{name} must be at least 1 in each direction, not {value!r}")
        sizes.append(size)
    x, y, z = (*sizes, 1, 1)[:3]
    return (x, y, z)


def places_of(numbers: Any, size: Dim3) -> tuple[Any, Any, Any]:
    """Return the x, y and z indices of blocks in a grid, or of threads in a block.

    `numbers` are linear indices, integers or arrays of them, and so are the results.
    """
    x, y, _ = size
    return numbers % x, numbers // x % y, numbers // (x * y)


@dataclass(frozen=True)
class Launch:
    """A grid of blocks of threads; `dynamic_shared_bytes` is added to the static memory.

    `cluster` is the size of its thread block clusters, in blocks; (1, 1, 1) without clusters.
    """

    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int = 0
    cluster: Dim3 = NO_CLUSTER

    @classmethod
    def of(
        cls,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        dynamic_shared_bytes: int = 0,
        cluster: int | Sequence[int] = 1,
    ) -> Launch:
        """Return the launch; LaunchError where no GPU would accept it."""
        dynamic = whole_number(dynamic_shared_bytes, "dynamic shared memory")
        of_blocks = dim3(cluster, "the cluster")
        launch = cls(dim3(grid, "the grid"), dim3(block, "the block"), dynamic, of_blocks)
        for size, limit, axis in zip(launch.block, MAX_BLOCK, "xyz", strict=True):
            if size > limit:
                raise LaunchError(f"a block has at most {limit} threads in {axis}, not {size}")
        for size, limit, axis in zip(launch.grid, MAX_GRID, "xyz", strict=True):
            if size > limit:
                raise LaunchError(f"a grid has at most {limit} blocks in {axis}, not {size}")
        if launch.threads_per_block > MAX_THREADS_PER_BLOCK:
            raise LaunchError(
                f"a block has at most {MAX_THREADS_PER_BLOCK} threads, "
                f"not {launch.threads_per_block} ({' x '.join(map(str, launch.block))})"
            )
        if launch.dynamic_shared_bytes < 0:
            raise LaunchError(f"dynamic shared memory cannot be {dynamic_shared_bytes} bytes")
        return launch

    def check(self, cc: ComputeCapability, static_shared_bytes: int) -> None:
        """Raise LaunchError where a GPU of `cc` cannot hold one block."""
        if self.threads_per_block > cc.max_threads_per_block:
            raise LaunchError(
                f"compute capability {cc} has at most {cc.max_threads_per_block} threads "
                f"in a block, not {self.threads_per_block}"
            )
        if self.cluster_blocks > 1:
            self._check_cluster(cc)
        need = static_shared_bytes + self.dynamic_shared_bytes
        if need > cc.shared_bytes_per_block:
            raise LaunchError(
                f"the block needs {need} bytes of shared memory; "
                f"compute capability {cc} has at most {cc.shared_bytes_per_block}"
            )

    def _check_cluster(self, cc: ComputeCapability) -> None:
        """Raise LaunchError where a GPU of `cc` or the grid cannot have such clusters."""
        size = " x ".join(map(str, self.cluster))
        if cc.major < 9:
            raise LaunchError(
                f"thread block clusters ({size} blocks) begin with compute capability 9.0, not {cc}"
            )
        if self.cluster_blocks > MOST_OF_CLUSTER:
            raise LaunchError(f"a cluster has at most {MOST_OF_CLUSTER} blocks, not {size}")
        if any(blocks % each for blocks, each in zip(self.grid, self.cluster, strict=True)):
            grid = " x ".join(map(str, self.grid))
            raise LaunchError(f"a grid of {grid} blocks is not a multiple of clusters of {size}")

    def check_code(self, registers: int, most_threads: int) -> None:
        """Raise LaunchError where a kernel's machine code cannot run in blocks of this size.

        Its threads have that many `registers`; `most_threads` are its `__launch_bounds__`, or 0.
        """
        threads = self.threads_per_block
        if most_threads and threads > most_threads:
            raise LaunchError(
                f"the kernel's __launch_bounds__ allow at most {most_threads} threads in a block, "
                f"not {threads}"
            )
        of_warp = -(-registers * WARP_SIZE // REGISTER_UNIT) * REGISTER_UNIT
        warps = PARTS * (REGISTERS_PER_BLOCK // PARTS // of_warp)
        if self.warps_per_block > warps:
            raise LaunchError(
                f"a block of {threads} threads with {registers} registers each needs more than the "
                f"{REGISTERS_PER_BLOCK:,} registers of a multiprocessor; at most "
                f"{warps * WARP_SIZE} threads fit (or compile with __launch_bounds__({threads}))"
            )

    @property
    def blocks(self) -> int:
        """Number of blocks in the grid."""
        x, y, z = self.grid
        return x * y * z

    @property
    def cluster_blocks(self) -> int:
        """Number of blocks in a cluster."""
        x, y, z = self.cluster
        return x * y * z

    @property
    def clusters(self) -> Dim3:
        """Number of clusters in the grid, by axis."""
        x, y, z = (n // each for n, each in zip(self.grid, self.cluster, strict=True))
        return (x, y, z)

    def whole_clusters(self, blocks: int) -> int:
        """Return a number of blocks, at least 1, as whole clusters: as many as fit, or one."""
        return max(blocks - blocks % self.cluster_blocks, self.cluster_blocks)

    def in_clusters(self, numbers: Any) -> Any:
        """Return the linear numbers of blocks that are counted cluster by cluster.

        Within a cluster they follow their ranks (%cluster_ctarank).
        """
        first = places_of(numbers // self.cluster_blocks, self.clusters)
        inside = places_of(numbers % self.cluster_blocks, self.cluster)
        each = zip(first, inside, self.cluster, strict=True)
        along = [one * size + within for one, within, size in each]
        return along[0] + self.grid[0] * (along[1] + self.grid[1] * along[2])

    @property
    def threads_per_block(self) -> int:
        """Number of threads in a block."""
        x, y, z = self.block
        return x * y * z

    @property
    def warps_per_block(self) -> int:
        """Number of warps in a block; the last may be partly empty."""
        return -(-self.threads_per_block // WARP_SIZE)


def bound_arguments(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Pair parameter names with values; LaunchError where they do not match."""
    if len(names) != len(values):
        missing = names[len(values) :]
        text = f"the kernel takes {len(names)} arguments ({', '.join(names)}), not {len(values)}"
        raise LaunchError(text + (f": {', '.join(missing)} missing" if missing else ""))
    return dict(zip(names, values, strict=True))
