"""Kernels of the dialect written out as CUDA C++, for the compiler to make machine code of.

The SSA form becomes labels and gotos, a variable for each value; `#line` keeps the lines of the
Python source. Types are the dialect's, equal to C's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.compiler.calls import MATH_NAMES
from gpusim.compiler.ir import Array, Block, Function, Value
from gpusim.errors import InputError
from gpusim.host.kept import Recent
from gpusim.isa.lines import Call, call_path, calls_of
from gpusim.launch.arguments import ArraySpec
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.launch.languages import PYTHON
from gpusim.launch.prepared import Prepared
from gpusim.sass.c_arithmetic import ARITHMETIC
from gpusim.sass.c_functions import NAMESPACE, definitions
from gpusim.sass.c_types import VECTORS, literal, of_dtype, of_value, unsigned
from gpusim.sass.compiler import Options
from gpusim.sass.intervals import Intervals, Known
from gpusim.sass.kernels import CodeKernel, CudaSource
from gpusim.typing import DType

REGISTERS: Mapping[str, str] = {
    "tid": "threadIdx", "ctaid": "blockIdx", "ntid": "blockDim", "nctaid": "gridDim",
}  # fmt: skip
SHUFFLES: Mapping[str, str] = {
    "idx": "__shfl_sync", "up": "__shfl_up_sync", "down": "__shfl_down_sync",
    "bfly": "__shfl_xor_sync",
}  # fmt: skip
BARRIERS: Mapping[str, str] = {
    "sync": "__syncthreads", "count": "__syncthreads_count", "and": "__syncthreads_and",
    "or": "__syncthreads_or",
}  # fmt: skip
FENCES: Mapping[str, str] = {
    "block": "__threadfence_block", "gpu": "__threadfence", "system": "__threadfence_system",
}  # fmt: skip
# Names that a kernel's own must not hide, or must not be.
RESERVED = frozenset(
    """alignas alignof asm auto bitand bitor bool break case catch char char16_t char32_t
    class compl const const_cast constexpr continue decltype default delete do double
    dynamic_cast else enum explicit export extern false float for friend goto if inline
    int long main mutable namespace new noexcept nullptr operator private protected
    public register reinterpret_cast restrict return short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw true try
    typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    and_eq not_eq or_eq xor_eq abs max min blockDim blockIdx gridDim threadIdx""".split()  # noqa: SIM905
) | {f"{name}{suffix}" for name in MATH_NAMES for suffix in ("", "f")}
CLUSTER: Mapping[str, str] = {
    "block_rank": "(int)__clusterRelativeBlockRank()", "num_blocks": "(int)__clusterSizeInBlocks()",
    "barrier_arrive": "__cluster_barrier_arrive()", "barrier_wait": "__cluster_barrier_wait()",
    "sync": "__cluster_barrier_arrive(); __cluster_barrier_wait()",
}  # fmt: skip
DYNAMIC = "dynamic_shared_memory"
DEFINITIONS = "definitions"  # the file of functions that stand before the kernel
MOST_WRITTEN = 8  # launches of which a kernel's text is kept


class Written:
    """A kernel as CUDA C++, for the known facts of its launch.

    `extra` are parameters after its own: lengths of arrays and steps between their elements, by
    the operation and its detail. `calls` are those of device functions by the file that the text
    names for their lines.
    """

    def __init__(self, function: Function, file: str, known: Known) -> None:
        self._function, self._file = function, file
        self.name = _name(function.name)
        self._intervals = Intervals(function, known)
        self._names: dict[Value, str] = {}
        self._agreed: list[str] = []
        self._peers: dict[str, str] = {}  # the types of arrays of other blocks, by name
        self._bulk_targets: set[str] = set()
        self._arrays = _array_names(function)
        self._prefix = _free_prefix(function)
        self.extra: dict[tuple[str, Any], str] = {}
        self.calls: dict[str, tuple[Call, ...]] = {}
        body = list(self._body())
        first = min((value.line for value in function.values() if value.line), default=1)
        frame = [part for text in (*self._head(), *self._declarations())
                 for part in (*self._line(first), text)]  # fmt: skip
        own = "\n".join(body)
        defined = [f'#line 1 "{DEFINITIONS}"', *definitions(own)]
        self.text = _on_lines([*defined, *frame, *body, "}"])

    @property
    def may_leave_an_axis(self) -> bool:
        """Whether an index of several may lie beyond its axis: C++ numbers elements through."""
        bounds = (value for value in self._function.values() if value.op == "bounds")
        return any(map(self._intervals.may_leave_an_axis, bounds))

    def values(self, arguments: Mapping[str, Any], launch: Launch) -> list[Any]:
        """Return the arguments for the parameters, in order."""
        own = [ArraySpec(a.shape, a.dtype) if is_strided(a) else a for a in arguments.values()]
        return [*own, *(_of_launch(*one, arguments, launch) for one in self.extra)]

    # -- the frame -----------------------------------------------------------------------------

    def _head(self) -> Iterator[str]:
        parameters = [
            f"{of_dtype(kind.dtype)} *{_name(name)}"
            if isinstance(kind, Array)
            else f"{of_dtype(kind)} {_name(name)}"
            for name, kind in self._function.params.items()
        ]
        parameters += [f"int {name}" for name in self.extra.values()]
        yield f'extern "C" __global__ void {self.name}({", ".join(parameters)}) {{'

    def _declarations(self) -> Iterator[str]:
        dynamic = [array for array in self._function.shared if 0 in array.shape]
        if len(dynamic) > 1:  # they begin at one place
            yield f"extern __shared__ __align__(16) unsigned char {DYNAMIC}[];"
        for array in (*self._function.shared, *self._function.local):
            kind, name = of_dtype(array.dtype), self._array(array)
            if [array] == dynamic:
                yield f"extern __shared__ __align__(16) {kind} {name}[];"
            elif 0 in array.shape:
                yield f"{kind} *const {name} = ({kind} *){DYNAMIC};"
            else:
                space = "__shared__ " if array.space == "shared" else ""
                alignment = "__align__(16) " if name in self._bulk_targets else ""
                yield f"{space}{alignment}{kind} {name}[{np.prod(array.shape)}];"
        for name, kind in self._peers.items():
            yield f"{kind} *{name};"
        if self._agreed:
            yield f"int {', '.join(self._agreed)};"
        kinds: dict[str, list[str]] = {}
        for value, name in self._names.items():
            kinds.setdefault(of_value(value), []).append(name)
        for kind, names in kinds.items():
            yield f"{kind} {', '.join(names)};"

    def _body(self) -> Iterator[str]:
        for block in self._function.blocks:
            yield f"L{block.name}:;"
            for value in block.phis:
                self._named(value)
            for value in block.body:
                yield from self._statement(value)
            yield from self._end(block)

    def _end(self, block: Block) -> Iterator[str]:
        if not block.targets:
            yield "return;"
            return
        if len(block.targets) == 2:
            assert block.condition is not None
            yield from self._line(block.line)
            yield f"if ({self._of(block.condition)}) {{"
            yield from self._jump(block, block.targets[0])
            yield "} else {"
            yield from self._jump(block, block.targets[1])
            yield "}"
            return
        yield from self._jump(block, block.targets[0])

    def _jump(self, block: Block, target: Block) -> Iterator[str]:
        """Set the phis of a block, all at once, and go there."""
        place = target.preds.index(block)
        copies = [
            (self._named(phi), self._of(phi.args[place]), of_value(phi)) for phi in target.phis
        ]
        copies = [copy for copy in copies if copy[0] != copy[1]]
        yield "{"
        for number, (_, source, kind) in enumerate(copies):
            yield f"{kind} next{number} = {source};"
        for number, (name, _, _) in enumerate(copies):
            yield f"{name} = next{number};"
        yield "}"
        yield f"goto L{target.name};"

    def _line(self, line: int) -> Iterator[str]:
        if calls := calls_of(line):
            file = f"{self._file} ({call_path(calls)})"
            self.calls[file] = calls
            yield f'#line {line} "{file}"'
        elif line:
            yield f'#line {line} "{self._file}"'

    # -- operations ----------------------------------------------------------------------------

    def _statement(self, value: Value) -> Iterator[str]:
        if value.operation.describes or value.op == "const":
            return
        yield from self._line(value.line)
        text = self._expression(value)
        if value.dtype is None and value.op != "load_vector":
            yield f"{text};"
        else:
            yield f"{self._named(value)} = {text};"

    def _named(self, value: Value) -> str:
        return self._names.setdefault(value, f"{self._prefix}{len(self._names)}")

    def _of(self, value: Value) -> str:
        return literal(value.detail) if value.op == "const" else self._named(value)

    def _expression(self, value: Value) -> str:
        if value.op in ARITHMETIC:
            operands = [self._of(operand) for operand in value.args]
            return ARITHMETIC[value.op](value, operands, self._intervals)
        writer = _WRITERS.get(value.op)
        if writer is None:
            raise InputError(
                f"{self._function.name}, line {value.line}: {value.op} is not written out as CUDA "
                "C++; lower the kernel instead (--code lowering)"
            )
        return writer(self, value)

    def _list(self, values: Sequence[Value]) -> str:
        return ", ".join(map(self._of, values))

    def _array(self, array: Array) -> str:
        return self._arrays[array.space, array.name, array.offset]

    def _map_shared_rank(self, value: Value) -> str:
        peer, own = value.detail
        name, kind = f"{own.name}_{peer.offset}", of_dtype(own.dtype)
        while name in self._arrays.values():
            name += "_"
        self._peers[name], self._arrays[peer.space, peer.name, peer.offset] = kind, name
        rank = self._of(value.args[0])
        return f"{name} = ({kind} *)__cluster_map_shared_rank({self._array(own)}, {rank})"

    def _mbarrier(self, value: Value) -> str:
        array, word = value.detail
        place, *numbers = [self._place(array, value.args[0]), *map(self._of, value.args[1:])]
        return f"{NAMESPACE}::barrier_{word}({', '.join([place, *numbers])})"

    def _memcpy_async_tx(self, value: Value) -> str:
        self._bulk_targets.add(self._array(value.detail[0]))
        target, source, barrier = map(self._place, value.detail, (*value.args[:2], value.args[3]))
        return f"{NAMESPACE}::copy_bulk({target}, {source}, {self._of(value.args[2])}, {barrier})"

    def _place(self, array: Array, index: Value) -> str:
        return f"&{self._array(array)}[{self._of(index)}]"

    def _element(self, array: Array, index: Value) -> str:
        name = self._array(array)
        if array.volatile:
            return f"((volatile {of_dtype(array.dtype)} *){name})[{self._of(index)}]"
        return f"{name}[{self._of(index)}]"

    def _vector(self, array: Array, count: int, index: Value) -> str:
        kind = f"{VECTORS[array.dtype.name]}{count}"
        return f"*({kind} *)({self._array(array)} + {self._of(index)})"

    def _of_launch(self, value: Value) -> str:
        """Return the parameter with the launch's fact of an array."""
        name, number = value.detail
        shown = f"{value.op}_{name}_{0 if number is None else number}"
        while shown in self._arrays.values():
            shown += "_"
        return self.extra.setdefault((value.op, value.detail), shown)

    def _part(self, value: Value) -> str:
        """Return one of several results: an element of a vector, or of a match."""
        (of,) = value.args
        if of.op == "match":
            return f"{self._of(of)}_agreed" if value.detail else self._of(of)
        return f"{self._of(of)}.{'xyzw'[value.detail]}"

    def _match(self, value: Value) -> str:
        given = self._list(value.args)
        if value.detail == "any":
            return f"__match_any_sync({given})"
        self._agreed.append(f"{self._named(value)}_agreed")
        return f"__match_all_sync({given}, &{self._agreed[-1]})"

    def _atomic(self, value: Value) -> str:
        array, operation = value.detail
        index, *operands = value.args
        return written(
            operation, array.dtype, self._place(array, index), list(map(self._of, operands))
        )


def _on_lines(parts: Sequence[str]) -> str:
    """Return the text with each numbered part on a line of its own; other parts continue it."""
    lines: list[str] = []
    for part in parts:
        if part.startswith("#line") and lines and lines[-1].startswith("#line"):
            lines[-1] = part
        elif part.startswith("#line") or not lines or lines[-1].startswith("#line"):
            lines.append(part)
        else:
            lines[-1] += f" {part}"
    return "\n".join([*lines, ""])


def _register(writer: Written, value: Value) -> str:
    name, _, axis = str(value.detail).partition(".")
    if name == "laneid":
        return "(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32"
    return f"({of_value(value)}){REGISTERS[name]}.{axis}"


def _made(writer: Written, value: Value) -> str:
    array, count = value.detail
    index, *elements = value.args
    kind = f"{VECTORS[array.dtype.name]}{count}"
    return f"{writer._vector(array, count, index)} = make_{kind}({writer._list(elements)})"


_WRITERS: Mapping[str, Callable[[Written, Value], str]] = {
    "undef": lambda w, v: f"({of_value(v)})0",
    "param": lambda w, v: _name(v.detail),
    "length": lambda w, v: w._of_launch(v),
    "stride": lambda w, v: w._of_launch(v),
    "sreg": _register,
    "load": lambda w, v: w._element(v.detail, v.args[0]),
    "store": lambda w, v: f"{w._element(v.detail, v.args[0])} = {w._of(v.args[1])}",
    "load_vector": lambda w, v: w._vector(v.detail[0], v.detail[1], v.args[0]),
    "element": lambda w, v: w._part(v),
    "store_vector": _made,
    "atomic": lambda w, v: w._atomic(v),
    "barrier": lambda w, v: f"{BARRIERS[v.detail]}({w._list(v.args)})",
    "syncwarp": lambda w, v: f"__syncwarp({w._list(v.args)})",
    "shuffle": lambda w, v: f"{SHUFFLES[v.detail]}({w._list(v.args)})",
    "vote": lambda w, v: f"__{v.detail}_sync({w._list(v.args)})",
    "match": lambda w, v: w._match(v),
    "activemask": lambda w, v: "__activemask()",
    "reduce": lambda w, v: f"__reduce_{v.detail}_sync({w._list(v.args)})",
    "cluster": lambda w, v: CLUSTER[v.detail],
    "cluster_barrier": lambda w, v: CLUSTER[v.detail],
    "map_shared_rank": lambda w, v: w._map_shared_rank(v),
    "mbarrier": lambda w, v: w._mbarrier(v),
    "memcpy_async_tx": lambda w, v: w._memcpy_async_tx(v),
    "proxy_fence": lambda w, v: f"{NAMESPACE}::fence_proxy_async()",
    "fence": lambda w, v: f"{FENCES[v.detail]}()",
}


def _free_prefix(function: Function) -> str:
    """Return a prefix of variables' names that avoids the names of arrays and parameters."""
    names = [*function.params, *(array.name for array in (*function.shared, *function.local))]
    prefix = "v"
    while any(name.rstrip("0123456789") == prefix for name in names):
        prefix += "_"
    return prefix


def _name(name: str) -> str:
    return f"{name}_" if name in RESERVED else name


def _array_names(function: Function) -> dict[tuple[str, str, int], str]:
    """Return names for all arrays: a device function may declare one at each of its calls."""
    names = {("global", name, 0): _name(name) for name in function.params}
    for array in (*function.shared, *function.local):
        name = _name(array.name)
        while name in names.values():
            name += "_"
        names[array.space, array.name, array.offset] = name
    return names


def is_strided(value: Any) -> bool:
    """Return whether elements of an array do not lie side by side."""
    return isinstance(value, np.ndarray) and not value.flags.c_contiguous


def _of_launch(op: str, detail: Any, arguments: Mapping[str, Any], launch: Launch) -> np.int32:
    """Return an array's length, of dynamic shared memory too, or a step between elements."""
    name, number = detail
    if not name:
        return np.int32(launch.dynamic_shared_bytes // number)
    array = arguments[name]
    if op == "stride":
        return np.int32(array.strides[number] // array.itemsize)
    return np.int32(array.size if number is None else array.shape[number])


class WrittenKernel:
    """A kernel of the dialect that goes through CUDA C++, for one combination of types.

    Sums without overflow in a launch are C's own, others are made to wrap around: launches
    that differ in nothing else share their code, cached in `kernels` by its text.
    """

    def __init__(self, function: Function, file: str) -> None:
        self.function, self._file = function, file
        self.kernels: dict[str, CodeKernel] = {}
        self._written: Recent[Any, Written] = Recent(MOST_WRITTEN)  # for all GPUs

    def written(self, arguments: Mapping[str, Any], launch: Launch | None = None) -> Written:
        """Return the kernel as CUDA C++ for arguments, and for a launch where there is one."""
        if any(isinstance(value, np.ndarray) for value in arguments.values()):
            return self._write(arguments, launch)
        key = launch, tuple(arguments.items())
        if key not in self._written:
            self._written[key] = self._write(arguments, launch)
        return self._written[key]

    def _write(self, arguments: Mapping[str, Any], launch: Launch | None) -> Written:
        return Written(self.function, self._file, Known(arguments, launch))

    def prepare(
        self,
        launch: Launch,
        arguments: Mapping[str, Any],
        cc: ComputeCapability,
        checked: Callable[[], Prepared],
    ) -> Prepared:
        """Return the kernel with its arguments as it runs on a GPU of `cc`.

        `checked` makes the launch in code that checks indices along each axis, where this does not.
        """
        written = self.written(arguments, launch)
        kernel = self.kernels.get(written.text)
        if kernel is None:
            source = CudaSource(written.text, self._file, Options(), written.calls)
            kernel = source[written.name]
            self.kernels[written.text] = kernel
        made = kernel.prepare(launch, written.values(arguments, launch), cc)
        strided = {_name(name): one for name, one in arguments.items() if is_strided(one)}
        rehearsal = checked() if written.may_leave_an_axis else None
        arguments = {**made.arguments, **strided}
        return replace(made, arguments=arguments, rehearsal=rehearsal, language=PYTHON)


FUNCTIONS: Mapping[str, str] = {
    "add": "atomicAdd", "min": "atomicMin", "max": "atomicMax", "exch": "atomicExch",
    "cas": "atomicCAS", "and": "atomicAnd", "or": "atomicOr", "xor": "atomicXor",
}  # fmt: skip
AS_UNSIGNED = ("add", "exch", "cas")  # 64-bit integers have these unsigned only
# The new value for atomics of floats, done by compare-and-swap of bits.
NEXT: Mapping[str, str] = {
    "min": "fmin(now, {0})", "max": "fmax(now, {0})", "exch": "{0}", "cas": "now == {0} ? {1} : now"
}  # fmt: skip


def written(operation: str, dtype: DType, place: str, operands: Sequence[str]) -> str:
    """Return the call that changes the element at an address and returns its old value.

    A difference is a sum: CUDA's own `atomicSub` negates an int, which is undefined for the least
    one, so that nvcc takes its operand for 0 where it can be nothing else.
    """
    given = list(operands)
    if operation == "sub":
        operation, given = "add", [_negated(dtype, given[0])]
    if dtype.kind == "f" and operation in NEXT:
        then = NEXT[operation].format(*given)
        kind = of_dtype(dtype)
        return f"{NAMESPACE}::swapped({place}, [=]({kind} now) {{ return ({kind})({then}); }})"
    if dtype.name == "int64" and operation in AS_UNSIGNED:
        kind = unsigned(dtype)
        place, given = f"({kind} *){place}", [f"({kind}){one}" for one in given]
    return f"{FUNCTIONS[operation]}({', '.join([place, *given])})"


def _negated(dtype: DType, operand: str) -> str:
    if dtype.kind == "f":
        return f"(-{operand})"
    return f"({of_dtype(dtype)})(({unsigned(dtype)})0 - ({unsigned(dtype)}){operand})"
