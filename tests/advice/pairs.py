"""The corpus: kernels with a defect and its cure, the launches that show it, small and large."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
SMS = 132  # of the H200 that large launches are measured on


@dataclass(frozen=True)
class Launch:
    """Grid and block, elements of the arrays x and y, and the numbers n and k."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    x: int
    y: int
    n: int = 0
    k: int = 0


@dataclass(frozen=True)
class Pair:
    """A defect of a kind and its cure, in a file of CUDA C++, with launches of both."""

    file: str
    kind: str
    defect: str
    cure: str
    small: Launch
    large: Launch
    small_cure: Launch | None = None
    large_cure: Launch | None = None
    dtype: str = "float32"

    @property
    def name(self) -> str:
        """The name of a test."""
        return f"{self.defect}-{self.cure}"

    def line(self) -> int:
        """Return the line that is marked with the kind in the defect; 0 where none is."""
        lines = (CORPUS / self.file).read_text(encoding="utf-8").splitlines()
        begin = next(n for n, text in enumerate(lines) if f" {self.defect}(" in text)
        for number, text in enumerate(lines[begin:], begin + 1):
            if text.endswith(f"<- {self.kind}"):
                return number
            if text == "}":
                break
        return 0


def _flat(blocks: int, threads: int, k: int = 0, x: int = 1, y: int = 1) -> Launch:
    """Return a launch with x and y elements for each thread."""
    n = blocks * threads
    return Launch((blocks,), (threads,), n * x, n * y, n, k)


def _square(n: int, tile: tuple[int, int], step: int) -> Launch:
    return Launch((n // step, n // step), tile, n * n, n * n, n)


PAIRS = (
    Pair("shared.cu", "bank-conflict", "transpose_conflicts", "transpose_padded",
         _square(64, (32, 8), 32), _square(4096, (32, 8), 32)),
    Pair("shared.cu", "bank-conflict", "strided_tree", "neighbouring_tree",
         _flat(4, 256), _flat(65536, 256)),
    Pair("shared.cu", "bank-conflict", "shared_records", "shared_columns",
         _flat(2, 256, 16), _flat(4096, 256, 256)),
    Pair("shared.cu", "bank-conflict", "bins_by_thread", "bins_by_bin",
         _flat(2, 128, 16), _flat(4096, 128, 256)),
    Pair("global.cu", "uncoalesced", "array_of_records", "record_of_arrays",
         _flat(4, 256, x=8), _flat(32768, 256, x=8)),
    Pair("global.cu", "uncoalesced", "row_each", "column_each",
         _flat(2, 128, 32, x=32), _flat(2048, 128, 64, x=64)),
    Pair("global.cu", "uncoalesced", "transpose_directly", "transpose_by_tile",
         _square(64, (32, 8), 32), _square(4096, (32, 8), 32)),
    Pair("global.cu", "uncoalesced", "chunk_each", "grid_stride",
         _flat(2, 256, 16, 16, 16), _flat(4096, 256, 16, 16, 16)),
    Pair("global.cu", "uncoalesced", "scattered_store", "gathered_store",
         _flat(8, 256), _flat(65536, 256)),
    Pair("global.cu", "repeated-accesses", "sum_in_memory", "sum_in_register",
         _flat(2, 256, 8, x=8), _flat(2112, 256, 32, x=32)),
    Pair("global.cu", "repeated-accesses", "scale_in_memory", "scale_in_register",
         _flat(2, 256, 8, y=8), _flat(2112, 256, 32, y=32)),
    Pair("global.cu", "repeated-accesses", "stencil_from_global", "stencil_from_shared",
         _flat(2, 256, x=2), _flat(16384, 256, x=2)),
    Pair("global.cu", "repeated-accesses", "product_from_global", "product_from_tiles",
         _square(32, (16, 16), 16), _square(512, (16, 16), 16)),
    Pair("global.cu", "narrow-loads", "four_words", "one_vector",
         _flat(4, 256, x=4), _flat(32768, 256, x=4)),
    Pair("warps.cu", "divergence", "by_parity", "by_warp",
         _flat(2, 256, 32), _flat(4096, 256, 512)),
    Pair("warps.cu", "divergence", "tree_by_mask", "tree_by_half",
         _flat(4, 256), _flat(65536, 256)),
    Pair("warps.cu", "divergence", "length_by_lane", "length_by_warp",
         _flat(1, 1024, 1), _flat(1056, 1024, 16)),
    Pair("warps.cu", "idle-lanes", "tree_of_all_warps", "tree_of_shuffles",
         _flat(4, 512), _flat(32768, 512)),
    Pair("warps.cu", "idle-lanes", "first_warp_works", "every_warp_works",
         _flat(2, 256, 4), _flat(4096, 256, 32)),
    Pair("warps.cu", "barrier", "barrier_of_the_block", "barrier_of_the_warp",
         _flat(2, 512, 8), _flat(2112, 512, 128)),
    Pair("warps.cu", "atomics", "one_total", "total_of_blocks",
         _flat(4, 256), _flat(4096, 256)),
    Pair("warps.cu", "atomics", "shared_bins", "bins_by_lane",
         _flat(2, 256, 16), _flat(2112, 256, 64), dtype="int32"),
    Pair("warps.cu", "atomics", "global_bins", "spread_bins",
         _flat(4, 256, 2, y=8), _flat(1056, 256, 4, y=8), dtype="int32"),
    Pair("latency.cu", "latency", "load_by_load", "loads_together",
         _flat(4, 64, 32, x=32), _flat(264, 64, 256, x=256),
         _flat(32, 64, 4, x=4), _flat(2112, 64, 32, x=32)),
    Pair("latency.cu", "occupancy", "large_tiles", "small_tiles",
         _flat(4, 64, 16), _flat(42240, 64, 256)),
    Pair("latency.cu", "small-blocks", "fma_loop", "fma_loop",
         _flat(8, 32, 16), _flat(135168, 32, 256),
         _flat(1, 256, 16), _flat(16896, 256, 256)),
    Pair("latency.cu", "few-blocks", "strided_sum", "strided_sum",
         Launch((8,), (256,), 2**16, 2**16, 2**16), Launch((16,), (256,), 2**22, 2**18, 2**22),
         Launch((SMS,), (256,), 2**16, 2**16, 2**16), Launch((1056,), (256,), 2**22, 2**19, 2**22)),
    Pair("latency.cu", "tail", "large_tiles", "large_tiles",
         _flat(6 * SMS, 64, 80), _flat(6 * SMS, 64, 10240),
         _flat(5 * SMS, 64, 96), _flat(5 * SMS, 64, 12288)),
    Pair("latency.cu", "dependent-instructions", "one_chain", "four_chains",
         _flat(SMS, 32, 64), _flat(SMS, 128, 2048)),
    Pair("latency.cu", "fine-grain", "sum_of_one", "sum_of_many",
         _flat(8, 256), _flat(131072, 256), _flat(1, 256, x=16), _flat(8192, 256, x=16)),
    Pair("latency.cu", "loop-overhead", "short_loop", "unrolled_loop",
         _flat(8, 256), _flat(8448, 256)),
    Pair("latency.cu", "local-memory", "local_array", "shared_array",
         _flat(2, 128, 16), _flat(4224, 128, 256)),
    Pair("arithmetic.cu", "integer-division", "divide", "shift",
         _flat(2, 256, 3), _flat(8448, 256, 3), dtype="int32"),
    Pair("arithmetic.cu", "integer-division", "long_division", "long_shift",
         _flat(2, 256, 3), _flat(8448, 256, 3), dtype="int32"),
    Pair("arithmetic.cu", "double-precision", "in_double", "in_single",
         _flat(2, 256, 32), _flat(8448, 256, 256)),
    Pair("arithmetic.cu", "integers-64", "in_64_bits", "in_32_bits",
         _flat(2, 256, 32), _flat(8448, 256, 256), dtype="int32"),
    Pair("arithmetic.cu", "special-functions", "sines", "polynomials",
         _flat(2, 256, 16), _flat(8448, 256, 128)),
    Pair("arithmetic.cu", "constants", "constants_by_lane", "constants_by_step",
         _flat(2, 256, 16), _flat(4224, 256, 64)),
    Pair("code.cu", "instruction-fetch", "long_code", "short_code",
         _flat(SMS, 64, x=2), _flat(1056, 128, x=2)),
)  # fmt: skip
