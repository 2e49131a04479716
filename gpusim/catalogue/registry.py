"""The registry of the kernels that come with gpusim: lesson, launch rule, expected result.

A kernel is one decorated function in `gpusim/kernels/`: it takes a `Template` (the arguments of
a C++ template) and returns a kernel of the dialect. The catalogue finds the files
by itself and imports neither compiler nor machine.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.catalogue import oracle
from gpusim.catalogue.oracle import Expected
from gpusim.errors import InputError, LaunchError, did_you_mean
from gpusim.launch.arguments import MAX_ELEMENTS, ArraySpec, array_spec
from gpusim.launch.grid import MOST_OF_CLUSTER, Launch, whole_number
from gpusim.typing import Array, DType

Kernel = Any  # the return type of cuda.jit; the catalogue does not import the dialect

NUMBERS = (
    "int32", "uint32", "int64", "uint64", "float32", "float64", "int8", "uint8", "int16", "uint16",
)  # fmt: skip


@dataclass(frozen=True)
class Origin:
    """A kernel's published text: title, author, a sentence about it and its public address.

    An author who is not named in the text and an address that is not known are empty. Lists show
    the texts in order of `place`.
    """

    title: str
    author: str = ""
    about: str = ""
    url: str = ""
    place: int = 0

    def __str__(self) -> str:
        return f"{self.title} ({self.author})" if self.author else self.title


@dataclass(frozen=True)
class Template:
    """Template parameters of a kernel's source."""

    block: int
    operation: str
    dtype: DType
    coarse: int

    @property
    def identity(self) -> Any:
        """The number, of the template's type, that changes nothing under the operation."""
        return oracle.identity(self.operation, self.dtype)


@dataclass(frozen=True)
class BlockRule:
    """The block sizes that a kernel supports."""

    least: int
    most: int = 1024
    power_of_two: bool = True
    multiple_of: int = 1

    def __str__(self) -> str:
        if self.power_of_two:
            return f"a power of two from {self.least} to {self.most}"
        if self.multiple_of > 1:
            return f"a multiple of {self.multiple_of} from {self.least} to {self.most}"
        return f"any size from {self.least} to {self.most}"

    def allows(self, block: int) -> bool:
        """Return whether a block of this size will do."""
        fits = self.least <= block <= self.most and block % self.multiple_of == 0
        return fits and not (self.power_of_two and block & (block - 1))

    def nearest(self, block: int) -> list[int]:
        """Return the allowed sizes next to `block`, at most one on either side."""
        below = next((b for b in range(min(block, self.most), 0, -1) if self.allows(b)), None)
        above = next((b for b in range(max(block, 1), self.most + 1) if self.allows(b)), None)
        return [size for size in (below, above) if size is not None]


@dataclass(frozen=True)
class Family:
    """The common properties of kernels of one kind.

    `outputs` is the number of elements that one launch writes, `results` the number that count
    (the others come from padding of the input), and `oracle` their expected values.
    """

    name: str
    operations: tuple[str, ...]
    outputs: Callable[[Setup], int]
    results: Callable[[Setup], int]
    oracle: Callable[[Setup, Array], Expected]


def _partial_results(setup: Setup, data: Array) -> Expected:
    chunk = setup.chunk * setup.cluster
    return oracle.reduce_blocks(data, setup.operation, setup.clusters, chunk, setup.additions)


def _prefix_sums(_: Setup, data: Array) -> Expected:
    return oracle.exclusive_scan(data)


def _one_a_cluster(setup: Setup) -> int:
    return setup.clusters


REDUCTION = Family("reduction", oracle.OPERATIONS, _one_a_cluster, _one_a_cluster, _partial_results)
SCAN = Family("scan", ("sum",), lambda setup: setup.length, lambda setup: setup.n, _prefix_sums)

RUN_N, PREDICTED_N = 2**16, 2**24
ARRAYS = ("input", "output", "flags")
FLAG = np.dtype(np.uint64)

Factory = Callable[[Template], Kernel]
# "input", "output", "flags" (a zero of 64 bits for each block) and the type of the count of
# elements, in the order of the kernel's parameters.
Signature = tuple[str | type[np.integer[Any]], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Entry:
    """A kernel with all that is known about it.

    A thread takes `per_thread` elements at a time (times the coarse factor, for kernels that have
    one). With `grid_free` blocks come back for more, so that any grid will do. A kernel that is
    not `guarded` reads for whole blocks at any n; `call` pads its input with numbers
    that change nothing. A kernel with a `default_cluster` is launched in clusters, of so many
    blocks. `least_cc` is the compute capability that it begins with; one that is not `is_lowered`
    uses operations that only nvcc's compiler has instructions for.
    """

    name: str
    factory: Factory
    family: Family
    origin: Origin
    teaches: str
    signature: Signature
    block_rule: BlockRule
    per_thread: int = 1
    dtypes: tuple[str, ...] = NUMBERS
    guarded: bool = True
    one_block: bool = False
    grid_free: bool = False
    default_grid: int | None = None
    default_block: int = 256
    default_n: int = RUN_N
    default_coarse: int | None = None
    default_cluster: int | None = None
    dynamic_shared: bool = False
    overwrites_input: bool = False
    defect: str | None = None
    fixes: str | None = None
    least_cc: str = "1.0"
    is_lowered: bool = True

    def __repr__(self) -> str:
        return f"<catalogue kernel {self.name}>"

    @property
    def predicted_n(self) -> int:
        """Default number of elements of a prediction; it fills a GPU if the kernel has no limit."""
        return PREDICTED_N if self.default_n >= RUN_N else self.default_n

    @property
    def fixed_by(self) -> str | None:
        """Name of the corrected kernel, None where there is nothing to correct."""
        return next((e.name for e in entries() if e.fixes == self.name), None)

    @property
    def operations(self) -> tuple[str, ...]:
        """The binary operations that the kernel supports."""
        return self.family.operations

    @property
    def requires(self) -> str:
        """The constraints on a launch, in words."""
        needs = [f"block: {self.block_rule}"]
        if self.one_block:
            needs.append("one block, with a thread for each element")
        elif not self.guarded:
            needs.append("input filled up to whole blocks: there is no guard")
        if self.default_cluster:
            needs.append(f"clusters of 1 to {MOST_OF_CLUSTER} blocks")
        if self.least_cc != "1.0":
            needs.append(f"compute capability {self.least_cc} or higher")
        if not self.is_lowered:
            needs.append("nvcc's code (extra nvcc)")
        return "; ".join(needs)

    def kernel(
        self,
        block: int | None = None,
        operation: str = "sum",
        dtype: DType | str | None = None,
        coarse: int | None = None,
    ) -> Kernel:
        """Return the kernel for these template parameters; the same ones give the same object."""
        size = self.default_block if block is None else block
        return self.setup(size, block=size, operation=operation, dtype=dtype, coarse=coarse).kernel

    def setup(
        self,
        n: int | None = None,
        *,
        block: int | None = None,
        operation: str = "sum",
        dtype: DType | str | None = None,
        grid: int | None = None,
        coarse: int | None = None,
        cluster: int | None = None,
    ) -> Setup:
        """Return a launch for `n` elements by the kernel's launch rule.

        InputError or LaunchError for an operation, type or size that the kernel does not support.
        """
        count = self.default_n if n is None else whole_number(n, "n")
        if not 1 <= count <= MAX_ELEMENTS:
            raise InputError(f"n must be from 1 to {MAX_ELEMENTS:,}, not {count:,}")
        if operation not in self.operations:
            raise InputError(
                f"{self.name} does not do {operation!r}; it does {', '.join(self.operations)}"
            )
        size = self._block(count, block)
        factor = self._coarse(coarse)
        together = self._cluster(cluster)
        return Setup(
            entry=self,
            n=count,
            block=size,
            grid=self._grid(count, size * self.per_thread * factor * together, together, grid),
            operation=operation,
            dtype=self._dtype(dtype),
            coarse=factor,
            cluster=together,
        )

    def call(
        self,
        data: Array,
        *,
        block: int | None = None,
        operation: str = "sum",
        grid: int | None = None,
        coarse: int | None = None,
        cluster: int | None = None,
    ) -> Call:
        """Return the launch on `data`, a one-dimensional array, with its arguments made."""
        array = np.asarray(data)
        if array.ndim != 1:
            raise InputError(f"{self.name} takes a row of numbers, not shape {array.shape}")
        if not array.size:
            raise InputError(f"{self.name} needs at least one number; there are none")
        setup = self.setup(
            array.size,
            block=block,
            operation=operation,
            dtype=array.dtype,
            grid=grid,
            coarse=coarse,
            cluster=cluster,
        )
        return setup.call(array)

    def to_dict(self) -> dict[str, Any]:
        """Return the kernel's row in a list of kernels, ready for JSON."""
        return {
            "name": self.name,
            "family": self.family.name,
            "origin": self.origin.title,
            "author": self.origin.author,
            "about": self.origin.about,
            "url": self.origin.url,
            "teaches": self.teaches,
            "defect": self.defect,
            "fixed_by": self.fixed_by,
            "fixes": self.fixes,
            "operations": list(self.operations),
            "dtypes": list(self.dtypes),
            "requires": self.requires,
            "grid_free": self.grid_free,
            "default_n": self.default_n,
            "default_block": self.default_block,
            "default_coarse": self.default_coarse,
            "default_cluster": self.default_cluster,
        }

    def _block(self, n: int, block: int | None) -> int:
        if self.one_block and n > self.block_rule.most:
            raise InputError(
                f"{self.name} works in one block: n is at most {self.block_rule.most}, not {n:,}"
            )
        if block is None:
            return n if self.one_block else self.default_block
        if not self.block_rule.allows(whole_number(block, "the block")):
            near = " or ".join(map(str, self.block_rule.nearest(block)))
            raise LaunchError(
                f"{self.name} needs a block that is {self.block_rule}, not {block}; try {near}"
            )
        if self.one_block and n > block:
            raise LaunchError(
                f"{self.name} works in one block: {n} elements need a block of {n}, not {block}"
            )
        return block

    def _coarse(self, coarse: int | None) -> int:
        if coarse is None:
            return self.default_coarse or 1
        if self.default_coarse is None:
            raise InputError(f"{self.name} has no coarse factor")
        if whole_number(coarse, "the coarse factor") < 1:
            raise InputError(f"the coarse factor must be at least 1, not {coarse}")
        return coarse

    def _dtype(self, dtype: DType | str | None) -> DType:
        try:
            kind: DType = np.dtype(self.dtypes[0] if dtype is None else dtype)
        except TypeError:
            raise InputError(
                f"{dtype!r} is not a data type; {self.name} takes {', '.join(self.dtypes)}"
            ) from None
        if kind.name not in self.dtypes or not kind.isnative:
            raise InputError(
                f"{self.name} does not take {kind.name}; it takes {', '.join(self.dtypes)}"
            )
        return kind

    def _cluster(self, cluster: int | None) -> int:
        if cluster is None:
            return self.default_cluster or 1
        if self.default_cluster is None:
            raise InputError(f"{self.name} has no clusters")
        if not 1 <= whole_number(cluster, "the cluster") <= MOST_OF_CLUSTER:
            raise LaunchError(f"a cluster has 1 to {MOST_OF_CLUSTER} blocks, not {cluster}")
        return cluster

    def _grid(self, n: int, chunk: int, cluster: int, grid: int | None) -> int:
        """Return the blocks of a launch, for clusters that take `chunk` elements at a time."""
        blocks = -(-n // chunk) * cluster
        if grid is None:
            return self.default_grid or blocks
        if not self.grid_free and whole_number(grid, "the grid") != blocks:
            raise LaunchError(
                f"{self.name} needs {blocks:,} blocks for {n:,} elements, not {grid:,}: "
                "its grid follows from n and the block"
            )
        if whole_number(grid, "the grid") < 1:
            raise LaunchError(f"a grid has at least 1 block, not {grid}")
        return grid


@dataclass(frozen=True, eq=False)
class Setup:
    """One launch of a catalogue kernel, checked, without data. Made by `Entry.setup`."""

    entry: Entry
    n: int
    block: int
    grid: int
    operation: str
    dtype: DType
    coarse: int
    cluster: int = 1

    @property
    def clusters(self) -> int:
        """The clusters of the grid; without clusters a block is one."""
        return self.grid // self.cluster

    @property
    def chunk(self) -> int:
        """Consecutive elements that a block takes at a time."""
        return self.block * self.entry.per_thread * self.coarse

    @property
    def length(self) -> int:
        """Elements of the input array: n, or whole chunks where the kernel has no guard."""
        return self.n if self.entry.guarded else -(-self.n // self.chunk) * self.chunk

    @property
    def results(self) -> int:
        """Number of results: one for each block or cluster of a reduction, n for a scan."""
        return self.entry.family.results(self)

    @property
    def additions(self) -> int:
        """How many additions follow each other: a thread's own, the tree's, the cluster's."""
        strides = -(-self.n // (self.grid * self.chunk))
        return strides * -(-self.chunk // self.block) + self.block.bit_length() + self.cluster - 1

    @property
    def launch(self) -> Launch:
        """Grid, block and dynamic shared memory."""
        dynamic = self.block * self.dtype.itemsize if self.entry.dynamic_shared else 0
        return Launch.of(self.grid, self.block, dynamic, self.cluster)

    @property
    def template(self) -> Template:
        """The template parameters."""
        return Template(self.block, self.operation, self.dtype, self.coarse)

    @property
    def kernel(self) -> Kernel:
        """The kernel, built once for each set of template parameters."""
        return _build(self.entry.factory, self.template)

    @property
    def configured(self) -> Any:
        """The kernel with its grid and block: `configured(*arguments)` runs it."""
        launch = self.launch
        return self.kernel[launch.grid, launch.block, 0, launch.dynamic_shared_bytes, self.cluster]

    @property
    def specs(self) -> tuple[Any, ...]:
        """The kernel's arguments, with arrays that have no elements."""
        return self._arguments(
            array_spec(self.length, self.dtype),
            array_spec(self.entry.family.outputs(self), self.dtype),
            array_spec(self.grid, FLAG),
        )

    def filled(self) -> tuple[Any, ...]:
        """Return the kernel's arguments, with numbers to try it on."""
        return self.call(sample(self.n, self.dtype)).arguments

    def call(self, data: Array) -> Call:
        """Return this launch on `data` of n elements of the dtype."""
        if data.shape != (self.n,) or data.dtype != self.dtype:
            raise InputError(
                f"expected {self.n} numbers of {self.dtype.name}, "
                f"not {data.shape} of {data.dtype.name}"
            )
        array = np.ascontiguousarray(data)
        if self.length != self.n:
            array = np.full(self.length, self.template.identity, self.dtype)
            array[: self.n] = data
        elif self.entry.overwrites_input and np.shares_memory(array, data):
            array = array.copy()
        output = np.zeros(self.entry.family.outputs(self), self.dtype)
        return Call(self, data, output, self._arguments(array, output, np.zeros(self.grid, FLAG)))

    def _arguments(self, *arrays: Array | ArraySpec) -> tuple[Any, ...]:
        """Return the arguments in the kernel's order, with the count of elements in its type."""
        count = self.length if self.entry.one_block else self.n
        given = dict(zip(ARRAYS, arrays, strict=True))
        return tuple(given[p] if isinstance(p, str) else p(count) for p in self.entry.signature)


@dataclass(frozen=True, eq=False)
class Call:
    """A launch with its data: `run` it, then compare `result` with `expected()`."""

    setup: Setup
    data: Array
    output: Array
    arguments: tuple[Any, ...]

    @property
    def kernel(self) -> Kernel:
        """The kernel to launch."""
        return self.setup.kernel

    @property
    def launch(self) -> Launch:
        """Grid, block and dynamic shared memory."""
        return self.setup.launch

    @property
    def configured(self) -> Any:
        """The kernel with its grid and block: `configured(*arguments)` runs it."""
        return self.setup.configured

    @property
    def result(self) -> Array:
        """The results that the kernel has written so far, without padding."""
        return self.output[: self.setup.results]

    def run(self) -> None:
        """Run the launch."""
        self.configured(*self.arguments)

    def expected(self) -> Expected:
        """Return the expected result of the launch, from NumPy."""
        return self.setup.entry.family.oracle(self.setup, self.data)

    def wrong(self) -> int:
        """Return the number of wrong results."""
        return int(np.count_nonzero(self.expected().wrong(self.result)))


@functools.cache
def _build(factory: Factory, template: Template) -> Kernel:
    return factory(template)


_ENTRIES: dict[str, Entry] = {}


def kernel(
    *, family: Family, origin: Origin, signature: Signature, block_rule: BlockRule, **facts: Any
) -> Callable[[Factory], Entry]:
    """Enter a factory of kernels in the catalogue, under its own name.

    The first line of its docstring is the kernel's lesson; the rest are fields of `Entry`.
    """

    def enter(factory: Factory) -> Entry:
        name = getattr(factory, "__name__", "")
        lines = (factory.__doc__ or "").strip().splitlines()
        if not lines or name in _ENTRIES:
            raise TypeError(f"the kernel {name!r} needs a docstring and a name of its own")
        _check(name, origin, signature, facts.get("dtypes", NUMBERS))
        entry = Entry(
            name=name,
            factory=factory,
            family=family,
            origin=origin,
            teaches=lines[0],
            signature=signature,
            block_rule=block_rule,
            **facts,
        )
        _ENTRIES[name] = entry
        return entry

    return enter


def _check(name: str, origin: object, signature: Signature, dtypes: Sequence[str]) -> None:
    """Raise TypeError for facts of a kernel that its first launch would trip over."""
    if not isinstance(origin, Origin):
        raise TypeError(f"the origin of {name!r} is an Origin, not {origin!r}")
    for part in signature:
        if isinstance(part, str) and part not in ARRAYS:
            raise TypeError(f"the signature of {name!r} has {', '.join(ARRAYS)}, not {part!r}")
    unknown = [dtype for dtype in dtypes if dtype not in NUMBERS]
    if unknown:
        raise TypeError(f"{name!r} has no type {unknown[0]!r}; known are {', '.join(NUMBERS)}")


def _check_fixes(entry: Entry, known: Mapping[str, Entry]) -> None:
    """Raise TypeError for the correction of a kernel that is not there, or that has no defect."""
    if entry.fixes is None:
        return
    if entry.fixes not in known:
        near = did_you_mean(entry.fixes, known)
        raise TypeError(f"{entry.name!r} fixes {entry.fixes!r}: there is no such kernel{near}")
    if known[entry.fixes].defect is None:
        raise TypeError(f"{entry.name!r} fixes {entry.fixes!r}, a kernel without a defect")


def _reading_order(entry: Entry) -> tuple[Any, ...]:
    """Reductions before scans, text by text, with `step10` after `step2`."""
    parts = re.split(r"(\d+)", entry.name)
    named = tuple(int(part) if part.isdigit() else part for part in parts)
    return (entry.family.name, entry.origin.place, entry.origin.title, named)


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return every kernel of `gpusim/kernels/`, in reading order."""
    package = importlib.import_module("gpusim.kernels")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"gpusim.kernels.{module.name}")
    for entry in _ENTRIES.values():
        _check_fixes(entry, _ENTRIES)
    return tuple(sorted(_ENTRIES.values(), key=_reading_order))


def find(name: str) -> Entry:
    """Return the kernel of this name; InputError with the nearest names where there is none."""
    known = {entry.name: entry for entry in entries()}
    if name in known:
        return known[name]
    near = did_you_mean(name, known)
    raise InputError(f"there is no kernel {name!r}{near} (gpusim list shows all of them)")


def sample(n: int, dtype: DType | str) -> Array:
    """Return `n` numbers to try a kernel on: small, mixed, negative where the type allows it.

    The same for every run; sums of as many as 2^18 of them are exact even in float32.
    """
    kind: DType = np.dtype(dtype)
    # Knuth's multiplicative hash: spreads well, and needs no generator to be imported.
    # Everything in place: at 2^26 elements each copy would cost 256 MB.
    mixed = np.arange(n, dtype=np.uint32)
    mixed *= np.uint32(2654435761)
    mixed >>= np.uint32(16)
    mixed %= np.uint32(101)
    numbers = mixed.view(np.int32)
    if kind.kind != "u":
        numbers -= 50
    return numbers.astype(kind, copy=False)
