"""A kernel's arguments as `--arg` describes them: arrays, files, numbers, by place or by name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.cli.arrays import numbers
from gpusim.cli.expressions import NO_NAMES, is_expression, number_of, parts_of, size_of
from gpusim.cli.inputs import dtype, fits, number, whole_number
from gpusim.errors import InputError, did_you_mean
from gpusim.host.files import shown
from gpusim.host.lazy_memory import zeros
from gpusim.launch.arguments import MAX_ARRAY, MAX_ELEMENTS, ArraySpec, array_spec
from gpusim.launch.grid import ComputeCapability
from gpusim.launch.tensor_maps import TensorMap
from gpusim.typing import Array, DType

if TYPE_CHECKING:
    from gpusim.isa.ops import Program
    from gpusim.launch.configured import ConfiguredKernel

_NAMED = re.compile(r"([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
_ARRAY = re.compile(r"(\w+)\[([^\]]*)\](?:=(.*))?")
_CAST = re.compile(r"(\w+)\((.*)\)")
_TENSOR = re.compile(
    r"tensor\(\s*(\w+\[[^\]]*\](?:=[^,]+)?|\w+)\s*,\s*(\d+(?:x\d+)*)"
    r"(?:\s*,\s*swizzle=(\d+))?(?:\s*,\s*fill=(\w+))?\s*\)"
)
_FILE = re.compile(r"(\w+)?@(.*)")

ARGUMENT_FORMS = (
    "write int32[4096]=arange, float32[64,64]=random, @numbers.npy, 4096, 2^12, 0.5, uint32(7), or "
    "null for a pointer to nothing, with NAME= before it to give it by name"
)

NULLS = ("null", "nullptr", "none")

_RANDOM = re.compile(r"random:(\d{1,9})(?::([^:]+):([^:]+))?")


def _random(shape: tuple[int, ...], kind: DType, seed: int = 0) -> Array:
    """Seeded: floats in [0, 1), whole numbers from 0 to 99."""
    generator = np.random.default_rng(seed)
    if kind.kind == "f":
        return generator.random(shape).astype(kind)
    return generator.integers(0, 2 if kind.kind == "b" else 100, shape).astype(kind)


def _random_between(
    shape: tuple[int, ...], kind: DType, seed: int, ends: Sequence[str], text: str
) -> Array:
    """Return numbers from the lower to the upper end, both included where they are whole."""
    low, high = (_scalar(end, kind, text) for end in ends)
    if not low <= high:
        raise InputError(f"--arg {shown(text)!r}: {ends[0]} is above {ends[1]}")
    generator = np.random.default_rng(seed)
    if kind.kind == "f":
        return np.asarray(low + (high - low) * generator.random(shape), kind)
    whole = generator.integers(int(low), int(high), shape, np.int64 if low < 0 else np.uint64, True)
    return np.asarray(whole, kind)


FILLINGS: dict[str, Callable[[tuple[int, ...], DType], Array]] = {
    "zeros": lambda shape, kind: zeros(math.prod(shape), kind).reshape(shape),
    "ones": np.ones,
    "arange": lambda shape, kind: np.arange(int(np.prod(shape))).astype(kind).reshape(shape),
    "random": _random,
}


@dataclass(frozen=True)
class Argument:
    """One `--arg`: its value, and the parameter's name where the user gave one."""

    name: str | None
    value: Any
    text: str


def parted_by_name(text: str) -> tuple[str | None, str]:
    """Return the name and the value of `[NAME=]VALUE`; no name where none is given."""
    named = _NAMED.fullmatch(text.strip())
    return (named[1], named[2].strip()) if named else (None, text.strip())


def argument(text: str, *, filling: str = "", names: Mapping[str, int] = NO_NAMES) -> Argument:
    """Return the argument that `[NAME=]VALUE` describes.

    VALUE is an array, `DTYPE[SHAPE]=FILLING` (zeros, ones, arange, a number, random,
    random:SEED or random:SEED:LEAST:MOST);
    a file, `@FILE` or `DTYPE@FILE`; null, a pointer to nothing (None); or a number, plain or as
    `DTYPE(NUMBER)`. An array without a filling has `filling`, or is an `array_spec` without
    elements. In shapes and for numbers may stand expressions of `names`.
    """
    name, value = parted_by_name(text)
    return Argument(name, _argument_value(value, text, filling, names), text)


def _argument_value(value: str, text: str, filling: str, names: Mapping[str, int]) -> Any:
    if match := _ARRAY.fullmatch(value):
        return _described_array(match[1], match[2], match[3] or filling, text, names)
    if match := _TENSOR.fullmatch(value):
        box = tuple(map(int, match[2].split("x")))
        of = _TensorOf(match[1], box, int(match[3] or 0), match[4] or "zero")
        described = _ARRAY.fullmatch(match[1])
        return of.of(_argument_value(match[1], text, filling, names)) if described else of
    if match := _FILE.fullmatch(value):
        return numbers(match[2], dtype(match[1]) if match[1] else None)
    if value.lower() in NULLS:
        return None
    if is_expression(value, names):
        return number_of(value, names)
    if match := _CAST.fullmatch(value):
        inside = match[2]
        if is_expression(inside, names):
            inside = str(number_of(inside, names))
        return _scalar(inside, dtype(match[1]), text)
    plain = _plain_number(value)
    if plain is None:
        raise InputError(f"--arg {shown(text)!r} is not understood; {ARGUMENT_FORMS}")
    if not fits(plain, dtype("float64" if isinstance(plain, float) else "int64")):
        raise InputError(
            f"--arg {shown(text)!r} is beyond int64; "
            "give it a type, as in uint64(2^63) or float64(1e30)"
        )
    return plain


@dataclass(frozen=True)
class _TensorOf:
    """A tensor map of an array that is another argument, by its name."""

    name: str
    box: tuple[int, ...]
    swizzle: int
    fill: str

    def of(self, array: Any) -> TensorMap:
        """Return the map of an array."""
        return TensorMap(array, self.box, swizzle=self.swizzle, fill=self.fill)

    def among(self, values: Mapping[str, Any]) -> TensorMap:
        """Return the map of the array among arguments."""
        if not isinstance(values.get(self.name), np.ndarray | ArraySpec):
            raise InputError(
                f"tensor({self.name}, ...) needs an array: a parameter with --arg "
                f"'{self.name}=float32[64,64]', or float32[64,64] in place of {self.name}"
            )
        return self.of(values[self.name])


def _described_array(
    kind_name: str, shape_text: str, filling: str, text: str, names: Mapping[str, int]
) -> Array | ArraySpec:
    kind = dtype(kind_name)
    lengths = [size_of(part, names) for part in parts_of(shape_text)]
    shape = tuple(length for length in lengths if length is not None and length > 0)
    if len(shape) != len(lengths) or len(shape) > 3:
        raise InputError(f"--arg {shown(text)!r}: the shape is one to three sizes of at least 1")
    most = MAX_ARRAY if filling in ("", "zeros") else MAX_ELEMENTS
    if math.prod(shape) > most:
        filled = "" if most == MAX_ARRAY else " other than zeros"
        raise InputError(f"--arg {shown(text)!r}: an array has at most {most:,} elements{filled}")
    if not filling:
        return array_spec(shape, kind)
    number_text = filling.removeprefix("full:")
    if number_text != filling or _plain_number(filling) is not None:
        return np.full(shape, _scalar(number_text, kind, text), dtype=kind)
    if match := _RANDOM.fullmatch(filling):
        seed, low, high = match.groups()
        if low is None:
            return _random(shape, kind, int(seed))
        return _random_between(shape, kind, int(seed), (low, high), text)
    if filling not in FILLINGS:
        known = ", ".join([*FILLINGS, "random:SEED", "random:SEED:LEAST:MOST", "a number"])
        raise InputError(
            f"--arg {shown(text)!r}: unknown filling {shown(filling)!r}"
            f"{did_you_mean(filling, FILLINGS)} (known: {known})"
        )
    return FILLINGS[filling](shape, kind)


def _plain_number(text: str) -> bool | int | float | None:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    whole = whole_number(text) if not re.search("[.eE]", text) else None
    return whole if whole is not None else number(text)


def _scalar(text: str, kind: DType, context: str) -> Any:
    value = _plain_number(text.strip())
    if isinstance(value, float) and kind.kind != "f" and value.is_integer():
        value = int(value)
    if value is None or not fits(value, kind):
        raise InputError(f"--arg {shown(context)!r}: {shown(text)!r} is not a value of {kind}")
    return kind.type(value)


def bound(arguments: Sequence[Argument], parameters: Sequence[str], kernel: str) -> list[Any]:
    """Return the values in the order of a kernel's parameters; unnamed ones fill the gaps."""
    values: dict[str, Any] = {}
    for given in arguments:
        if given.name is None:
            continue
        if given.name not in parameters:
            raise InputError(
                f"{kernel} has no argument {shown(given.name)!r}"
                f"{did_you_mean(given.name, parameters)} (it takes {', '.join(parameters)})"
            )
        if given.name in values:
            raise InputError(f"argument {shown(given.name)} of {kernel} is given twice")
        values[given.name] = given.value
    open_names = [name for name in parameters if name not in values]
    unnamed = [given for given in arguments if given.name is None]
    if len(unnamed) > len(open_names):
        raise InputError(
            f"{kernel} takes {len(parameters)} arguments ({', '.join(parameters)}), "
            f"not {len(arguments)}"
        )
    for name, given in zip(open_names, unnamed, strict=False):
        values[name] = given.value
    missing = open_names[len(unnamed) :]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise InputError(
            f"argument{plural} {', '.join(missing)} of {kernel} missing; "
            f"give {'them' if plural else 'it'} with --arg, for example --arg {missing[0]}=4096, "
            f"an array as --arg '{missing[0]}=float32[4096]'"
        )
    return [
        one.among(values) if isinstance(one, _TensorOf) else one
        for one in (values[name] for name in parameters)
    ]


ZEROS = "zeros"
LARGEST_INDEX = 7
# By type: letters of a text, and bits of bfloat16 from 2^-7 to 1.
_OF_TYPE = {"char": "97:122", "bfloat16": "15360:16256"}


def fillings(
    configured: ConfiguredKernel, values: Sequence[Any], cc: str | None = None
) -> Mapping[str, str]:
    """Return the fillings of a launch's arrays without elements, by parameter.

    They follow from the optimised machine code for `cc`, of a Python kernel the lowering's if it
    has any.
    """
    from gpusim.cli.launch_examples import parameters_of
    from gpusim.codegen.generators import AUTO, LOWERING
    from gpusim.codegen.programs import NotLoweredError, prepare
    from gpusim.machine import DEFAULT_CC

    names = configured.kernel.source.parameters  # type: ignore[attr-defined]
    types = {one.name: one.type for one in parameters_of(configured.kernel)}  # type: ignore[arg-type]
    places = enumerate(zip(names, values, strict=True))
    bare = [(at, name, one) for at, (name, one) in places if isinstance(one, ArraySpec)]
    if not bare:
        return {}
    known = DEFAULT_CC if cc is None else ComputeCapability.parse(cc)
    try:
        program = prepare(configured, values, known, code=LOWERING).program
    except NotLoweredError:
        program = prepare(configured, values, known, code=AUTO).program
    return {name: _filling(program, name, one, at, types.get(name, "")) for at, name, one in bare}


def _filling(program: Program, name: str, array: ArraySpec, seed: int, ctype: str) -> str:
    from gpusim.program.influence import influence

    if array.size > MAX_ELEMENTS or not _is_data(program, name):
        return ZEROS
    for word, values in _OF_TYPE.items():
        if re.search(rf"(?<!signed ){word}\b", ctype):
            return f"random:{seed}:{values}"
    if array.dtype.kind in "iu" and influence(program, name, is_array=True).in_addresses:
        return f"random:{seed}:0:{LARGEST_INDEX}"
    return f"random:{seed}"


def _is_data(program: Program, name: str) -> bool:
    """Return whether loads read an array, without atomic operations and waits for its elements."""
    from gpusim.isa.ops import OPS
    from gpusim.program.polling import polls

    waits = polls(program)
    readers = [
        (pc, row)
        for pc, row in enumerate(program.instructions)
        if row.memory is not None and OPS[row.op].reads_memory and row.memory.may_touch((name,))
    ]
    return bool(readers) and not any(
        row.memory is not None and name in row.memory.places
        for pc, row in readers
        if OPS[row.op].kind == "atomic" or pc in waits
    )
