"""Kernels of the dialect written out as CUDA C++, for the compiler to make machine code of.

The SSA form becomes labels and gotos, a variable for each value; `#line` keeps the lines of the
Python source. Types are the dialect's, which are C's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gpusim.compiler.ir import Array, Block, DType, Function, Value
from gpusim.errors import InputError
from gpusim.launch import ComputeCapability, Launch
from gpusim.prepared import Prepared
from gpusim.sass.compiler import Options
from gpusim.sass.kernels import CudaSource

C_TYPES: Mapping[str, str] = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short",
    "uint16": "unsigned short", "int32": "int", "uint32": "unsigned", "int64": "long long",
    "uint64": "unsigned long long", "float32": "float", "float64": "double",
}  # fmt: skip
VECTORS: Mapping[str, str] = {
    "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int",
    "uint32": "uint", "int64": "longlong", "uint64": "ulonglong", "float32": "float",
    "float64": "double",
}  # fmt: skip
REGISTERS: Mapping[str, str] = {
    "tid": "threadIdx", "ctaid": "blockIdx", "ntid": "blockDim", "nctaid": "gridDim",
}  # fmt: skip
OPERATORS: Mapping[str, str] = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "idiv": "/", "rem": "%", "and": "&", "or": "|",
    "xor": "^", "shl": "<<", "shr": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=",
}  # fmt: skip
FUNCTIONS: Mapping[str, tuple[str, str]] = {  # for 32 and for 64 bits
    "popc": ("__popc", "__popcll"), "ffs": ("__ffs", "__ffsll"), "clz": ("__clz", "__clzll"),
    "brev": ("__brev", "__brevll"), "min": ("min", "min"), "max": ("max", "max"),
    "abs": ("abs", "abs"),
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
ATOMICS: Mapping[str, str] = {
    "add": "atomicAdd", "sub": "atomicSub", "min": "atomicMin", "max": "atomicMax",
    "exch": "atomicExch", "cas": "atomicCAS", "and": "atomicAnd", "or": "atomicOr",
    "xor": "atomicXor",
}  # fmt: skip
OF_NO_TYPE = ("isnan", "isinf", "isfinite")
KEYWORDS = frozenset(
    """auto bool break case char class const continue default delete do double else enum extern
    false float for friend goto if inline int long new operator private public register return
    short signed sizeof static struct switch template this throw true try typedef union unsigned
    using virtual void volatile while min max abs""".split()  # noqa: SIM905
)
DYNAMIC = "dynamic_shared_memory"


class Written:
    """A kernel as CUDA C++.

    `extra` are parameters behind its own: lengths of arrays, (name, axis) each.
    """

    def __init__(self, function: Function, file: str) -> None:
        self._function, self._file = function, file
        self._names: dict[Value, str] = {}
        self._prefix = _free_prefix(function)
        self.extra: dict[tuple[str, int | None], str] = {}
        body = list(self._body())
        first = min((value.line for value in function.values() if value.line), default=1)
        frame = [part for text in (*self._head(), *self._declarations())
                 for part in (*self._line(first), text)]  # fmt: skip
        self.text = _on_lines([*frame, *body, "}"])

    def values(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return what is passed for the parameters, in order."""
        lengths = [
            np.int32(arguments[name].size if axis is None else arguments[name].shape[axis])
            for name, axis in self.extra
        ]
        return [*arguments.values(), *lengths]

    # -- the frame -----------------------------------------------------------------------------

    def _head(self) -> Iterator[str]:
        parameters = [
            f"{_c(kind.dtype)} *{_name(name)}"
            if isinstance(kind, Array)
            else f"{_c(kind)} {_name(name)}"
            for name, kind in self._function.params.items()
        ]
        parameters += [f"int {name}" for name in self.extra.values()]
        yield f'extern "C" __global__ void {self._function.name}({", ".join(parameters)}) {{'

    def _declarations(self) -> Iterator[str]:
        for array in self._function.shared:
            if 0 in array.shape:
                yield f"extern __shared__ __align__(16) unsigned char {DYNAMIC}[];"
                kind = _c(array.dtype)
                yield f"{kind} *const {_name(array.name)} = ({kind} *){DYNAMIC};"
            else:
                yield f"__shared__ {_c(array.dtype)} {_name(array.name)}[{np.prod(array.shape)}];"
        for array in self._function.local:
            yield f"{_c(array.dtype)} {_name(array.name)}[{np.prod(array.shape)}];"
        kinds: dict[str, list[str]] = {}
        for value, name in self._names.items():
            kinds.setdefault(_type_of(value), []).append(name)
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
            (self._named(phi), self._of(phi.args[place]), _type_of(phi)) for phi in target.phis
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
        if line:
            yield f'#line {line} "{self._file}"'

    # -- operations ----------------------------------------------------------------------------

    def _statement(self, value: Value) -> Iterator[str]:
        if value.operation.describes or value.op == "const":
            return
        yield from self._line(value.line)
        text = self._expression(value)
        if value.dtype is None and not _is_vector(value):
            yield f"{text};"
        else:
            yield f"{self._named(value)} = {text};"

    def _named(self, value: Value) -> str:
        return self._names.setdefault(value, f"{self._prefix}{len(self._names)}")

    def _of(self, value: Value) -> str:
        return literal(value.detail) if value.op == "const" else self._named(value)

    def _expression(self, value: Value) -> str:
        if value.op in OPERATORS:
            left, right = map(self._of, value.args)
            if _is_unsigned_in_c(value):
                return f"(int)((unsigned){left} {OPERATORS[value.op]} (unsigned){right})"
            return f"{left} {OPERATORS[value.op]} {right}"
        if value.op in FUNCTIONS:
            assert value.args[0].dtype is not None
            name = FUNCTIONS[value.op][value.args[0].dtype.itemsize == 8]
            return f"{name}({self._list(value.args)})"
        writer = _WRITERS.get(value.op)
        if writer is None:
            raise InputError(
                f"{self._function.name}, line {value.line}: {value.op} is not written out as CUDA "
                "C++; lower the kernel instead (--code lowering)"
            )
        return writer(self, value)

    def _list(self, values: Sequence[Value]) -> str:
        return ", ".join(map(self._of, values))

    def _element(self, array: Array, index: Value) -> str:
        name = _name(array.name)
        if array.strided:
            raise InputError(f"array {array.name!r} is not contiguous; pass a copy of it")
        if array.volatile:
            return f"((volatile {_c(array.dtype)} *){name})[{self._of(index)}]"
        return f"{name}[{self._of(index)}]"

    def _vector(self, array: Array, count: int, index: Value) -> str:
        return f"*({VECTORS[array.dtype.name]}{count} *)({_name(array.name)} + {self._of(index)})"

    def _length(self, value: Value) -> str:
        name, axis = value.detail
        if not name:
            raise InputError("the length of dynamic shared memory is not written out as CUDA C++")
        return self.extra.setdefault((name, axis), f"length_{name}_{0 if axis is None else axis}")

    def _atomic(self, value: Value) -> str:
        array, operation = value.detail
        index, *operands = value.args
        place = f"&{_name(array.name)}[{self._of(index)}]"
        given = [self._of(operand) for operand in operands]
        if array.dtype.kind == "f" and operation == "sub":
            operation, given = "add", [f"-({given[0]})"]
        if array.dtype == np.int64 and operation in ("add", "exch", "cas"):
            place = f"(unsigned long long *){place}"
            given = [f"(unsigned long long){one}" for one in given]
        return f"{ATOMICS[operation]}({', '.join([place, *given])})"


def _on_lines(parts: Sequence[str]) -> str:
    """Return the text, in which each line has its own number: what has none goes on in it."""
    lines: list[str] = []
    for part in parts:
        if part.startswith("#line") and lines and lines[-1].startswith("#line"):
            lines[-1] = part
        elif part.startswith("#line") or not lines or lines[-1].startswith("#line"):
            lines.append(part)
        else:
            lines[-1] += f" {part}"
    return "\n".join([*lines, ""])


def _is_unsigned_in_c(value: Value) -> bool:
    """Return whether CUDA C++ would work without a sign, as threadIdx and the like have none.

    That is so for `blockIdx.x * blockDim.x` and for what such a product is added to, before it
    is kept in an int: compilers unroll loops otherwise whose step has a sign.
    """
    if value.dtype != np.int32 or value.op not in ("add", "sub", "mul"):
        return False
    if value.op == "mul":
        return any(operand.op == "sreg" for operand in value.args)
    return any(one.op == "mul" and _is_unsigned_in_c(one) for one in value.args)


def _register(writer: Written, value: Value) -> str:
    name, _, axis = str(value.detail).partition(".")
    if name == "laneid":
        return "(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32"
    return f"({_type_of(value)}){REGISTERS[name]}.{axis}"


def _math(writer: Written, value: Value) -> str:
    single = value.args[0].dtype == np.float32 and value.detail not in OF_NO_TYPE
    return f"{value.detail}{'f' if single else ''}({writer._list(value.args)})"


def _match(writer: Written, value: Value) -> str:
    if value.detail != "any":
        raise InputError("match_all_sync is not written out as CUDA C++")
    return f"__match_any_sync({writer._list(value.args)})"


def _made(writer: Written, value: Value) -> str:
    array, count = value.detail
    index, *elements = value.args
    kind = f"{VECTORS[array.dtype.name]}{count}"
    return f"{writer._vector(array, count, index)} = make_{kind}({writer._list(elements)})"


_WRITERS: Mapping[str, Callable[[Written, Value], str]] = {
    "undef": lambda w, v: f"{_type_of(v)}()",
    "param": lambda w, v: _name(v.detail),
    "length": lambda w, v: w._length(v),
    "sreg": _register,
    "neg": lambda w, v: f"-{w._of(v.args[0])}",
    "not": lambda w, v: f"{'!' if v.dtype == np.bool_ else '~'}{w._of(v.args[0])}",
    "select": lambda w, v: "{} ? {} : {}".format(*map(w._of, v.args)),
    "cast": lambda w, v: f"({_type_of(v)}){w._of(v.args[0])}",
    "held": lambda w, v: w._of(v.args[0]),
    "math": _math,
    "load": lambda w, v: w._element(v.detail, v.args[0]),
    "store": lambda w, v: f"{w._element(v.detail, v.args[0])} = {w._of(v.args[1])}",
    "load_vector": lambda w, v: w._vector(v.detail[0], v.detail[1], v.args[0]),
    "element": lambda w, v: f"{w._of(v.args[0])}.{'xyzw'[v.detail]}",
    "store_vector": _made,
    "atomic": lambda w, v: w._atomic(v),
    "barrier": lambda w, v: f"{BARRIERS[v.detail]}({w._list(v.args)})",
    "syncwarp": lambda w, v: f"__syncwarp({w._list(v.args)})",
    "shuffle": lambda w, v: f"{SHUFFLES[v.detail]}({w._list(v.args)})",
    "vote": lambda w, v: f"__{v.detail}_sync({w._list(v.args)})",
    "match": _match,
    "activemask": lambda w, v: "__activemask()",
    "fence": lambda w, v: f"{FENCES[v.detail]}()",
}


def _free_prefix(function: Function) -> str:
    """Return what variables' names may begin with so that none is that of an array or parameter."""
    names = [*function.params, *(array.name for array in (*function.shared, *function.local))]
    prefix = "v"
    while any(name.rstrip("0123456789") == prefix for name in names):
        prefix += "_"
    return prefix


def _name(name: str) -> str:
    return f"{name}_" if name in KEYWORDS else name


def _c(dtype: DType) -> str:
    return C_TYPES[dtype.name]


def _is_vector(value: Value) -> bool:
    return value.op == "load_vector"


def _type_of(value: Value) -> str:
    if _is_vector(value):
        array, count = value.detail
        return f"{VECTORS[array.dtype.name]}{count}"
    assert value.dtype is not None
    return _c(value.dtype)


def literal(number: Any) -> str:
    """Return a NumPy scalar as C++ writes it, exactly."""
    kind = number.dtype
    if kind.kind == "b":
        return "true" if number else "false"
    if kind.kind == "f":
        if not np.isfinite(number):
            view, function = ("uint32", "__int_as_float") if kind.itemsize == 4 else (
                "uint64", "__longlong_as_double")  # fmt: skip
            return f"{function}({int(number.view(view)):#x})"
        return f"{float(number).hex()}{'f' if kind.itemsize == 4 else ''}"
    suffix = {"uint32": "u", "int64": "ll", "uint64": "ull"}.get(kind.name, "")
    value = int(number)
    if kind.kind == "i" and value == np.iinfo(kind).min and kind.itemsize >= 4:
        return f"({value + 1}{suffix} - 1)"
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"


class WrittenKernel:
    """A kernel of the dialect that goes through CUDA C++, for one combination of types."""

    def __init__(self, function: Function, file: str) -> None:
        self._written = Written(function, file)
        self._kernel = CudaSource(self._written.text, file, Options())[function.name]

    @property
    def text(self) -> str:
        """The kernel as CUDA C++."""
        return self._written.text

    def prepare(
        self, launch: Launch, arguments: Mapping[str, Any], cc: ComputeCapability
    ) -> Prepared:
        """Return the kernel with its arguments as it runs on a GPU of `cc`."""
        return self._kernel.prepare(launch, self._written.values(arguments), cc)
