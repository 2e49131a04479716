"""What a user writes on the command line, turned into values.

Counts, sizes, files of numbers, descriptions of arguments, kernels in files of their own.
Every function raises InputError for what it cannot use, and says what it expected.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.arguments import ArraySpec, array_spec
from gpusim.cuda import Kernel
from gpusim.errors import GpusimError, InputError

DType = np.dtype[Any]
Array = np.ndarray[Any, Any]

DTYPES: dict[str, DType] = {
    name: np.dtype(name)
    for name in (
        "int32", "uint32", "int64", "uint64", "float32", "float64",
        "bool", "int8", "uint8", "int16", "uint16",
    )
}  # fmt: skip

MAX_ELEMENTS = 2**31

_POWER = re.compile(r"(\d+)(?:\^|\*\*)(\d+)([+-]\d+)?")
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ARRAY = re.compile(r"(\w+)\[([^\]]*)\](?:=(.*))?")
_CAST = re.compile(r"(\w+)\((.*)\)")
_FILE = re.compile(r"(\w+)?@(.*)")

ARGUMENT_FORMS = (
    "write int32[4096]=arange, float32[64,64]=random, @numbers.npy, 4096, 2^12, 0.5 or uint32(7), "
    "with NAME= before it to give it by name"
)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" with the nearest names, or nothing where none is near."""
    near = get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def whole_number(text: str) -> int | None:
    """Return what 4096, 4_096, 1e6, 2^20, 2**20 or 2^20+1 stands for, None for anything else."""
    plain = text.strip().replace("_", "")
    power = _POWER.fullmatch(plain)
    if power:
        base, exponent, rest = int(power[1]), int(power[2]), int(power[3] or 0)
        return base**exponent + rest if exponent <= 64 and base <= 2**32 else None
    if re.fullmatch(r"[+-]?\d+", plain):
        return int(plain) if len(plain) <= 40 else None
    if re.fullmatch(r"\d+(\.\d+)?[eE]\+?\d{1,2}", plain):
        value = float(plain)
        return int(value) if value.is_integer() else None
    return None


def count(text: str, what: str = "n", *, least: int = 1, most: int = MAX_ELEMENTS) -> int:
    """Return a number of things between `least` and `most`."""
    value = whole_number(text)
    if value is None:
        raise InputError(f"{what} is {text!r}, not a whole number; write 4096, 2^20 or 1e6")
    if value < least:
        raise InputError(f"{what} must be at least {least}, not {text}")
    if value > most:
        raise InputError(f"{what} must be at most {most:,}, not {text}")
    return value


def sizes(text: str, what: str) -> tuple[int, ...]:
    """Return a grid or block written as 256, 16x16 or 8,8,4; limits are the launch's business."""
    parts = re.split(r"[x,]", text.strip().strip("()"))
    values = [whole_number(part) for part in parts]
    if len(values) > 3 or any(value is None for value in values):
        raise InputError(f"{what} is {text!r}; write one to three sizes, such as 256 or 16x16")
    return tuple(value for value in values if value is not None)


def listed(text: str, what: str) -> list[str]:
    """Return the parts of a list with commas; InputError where there is none."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"{what} is empty; give one or more, with commas between them")
    return parts


def dtype(text: str) -> DType:
    """Return a data type by its NumPy name."""
    if text not in DTYPES:
        raise InputError(
            f"unknown data type {text!r}{did_you_mean(text, DTYPES)} (known: {', '.join(DTYPES)})"
        )
    return DTYPES[text]


def numbers(path: str | Path, expected: DType | None = None) -> Array:
    """Return the numbers of a `.npy` file, or of text separated by commas or spaces.

    `expected` is the type asked for. A `.npy` file must hold it; text is read as it, and
    without it is int32, int64 or float64, whichever holds all of its numbers. A first line
    of text that has no number is taken for a heading; `#` starts a comment.
    """
    file = Path(path)
    try:
        if file.is_dir():
            raise InputError(f"{file} is a directory; give a file of numbers")
        if file.stat().st_size == 0:
            raise InputError(f"{file} is empty; it should hold numbers")
        array = _binary(file, expected) if file.suffix == ".npy" else _text(file, expected)
    except FileNotFoundError:
        raise InputError(f"there is no file {file}") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
    if array.size == 0:
        raise InputError(f"{file} holds no numbers")
    return array


def _binary(file: Path, expected: DType | None) -> Array:
    try:
        array: Array = np.load(file, allow_pickle=False)
    except (ValueError, EOFError, SyntaxError):
        raise InputError(f"{file} is not a NumPy file of numbers, or is cut short") from None
    held = array.dtype.newbyteorder("=")
    if held not in DTYPES.values():
        raise InputError(f"{file} holds {array.dtype}; kernels take {', '.join(DTYPES)}")
    if expected is not None and held != expected:
        raise InputError(f"{file} holds {held}, but {expected} is asked for")
    return np.ascontiguousarray(array, dtype=held)


def _text(file: Path, expected: DType | None) -> Array:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{file} is not text; give .npy, .csv or numbers as text") from None
    rows = [(number, words) for number, line in enumerate(lines, 1) if (words := _words(line))]
    if rows and all(_value(word) is None for word in rows[0][1]):
        rows = rows[1:]
        if not rows:
            raise InputError(f"{file} holds no numbers: it begins {lines[0][:40]!r}")
    words = [word for _, line in rows for word in line]
    values: Sequence[int | float]
    try:
        values = list(map(int, words))
    except ValueError:
        try:
            values = list(map(float, words))
        except ValueError:
            raise _misfit(file, rows, lambda word: _value(word) is not None) from None
    kind = expected or _narrowest(values)
    extremes = (min(values), max(values)) if values and isinstance(values[0], int) else values[:1]
    if not all(_fits(value, kind) for value in extremes):
        raise _misfit(file, rows, lambda word: _fits(_number(word), kind), f" in {kind}")
    return np.array(values, dtype=kind)


def _misfit(
    file: Path,
    rows: Iterable[tuple[int, list[str]]],
    good: Callable[[str], bool],
    where: str = "",
) -> InputError:
    """Return what is wrong with the first word that is not good."""
    number, word = next((n, word) for n, words in rows for word in words if not good(word))
    what = f"{word} does not fit{where}" if where else f"{word!r} is not a number"
    return InputError(f"{file}, line {number}: {what}")


def _words(line: str) -> list[str]:
    return line.partition("#")[0].replace(",", " ").replace(";", " ").split()


def _number(word: str) -> int | float:
    value = _value(word)
    assert value is not None
    return value


def _value(word: str) -> int | float | None:
    try:
        return int(word)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        return None


def _fits(value: int | float, kind: DType) -> bool:
    if kind.kind == "f":
        return True
    if isinstance(value, float):
        return False
    if kind.kind == "b":
        return value in (0, 1)
    limits = np.iinfo(kind)
    return bool(limits.min <= value <= limits.max)


def _narrowest(values: Sequence[int | float]) -> DType:
    """Return int32 or int64 where it holds all values, else float64."""
    if values and isinstance(values[0], int):
        for name in ("int32", "int64"):
            if _fits(min(values), DTYPES[name]) and _fits(max(values), DTYPES[name]):
                return DTYPES[name]
    return DTYPES["float64"]


def _random(shape: tuple[int, ...], kind: DType) -> Array:
    """Seeded: floats in [0, 1), whole numbers from 0 to 99."""
    generator = np.random.default_rng(0)
    if kind.kind == "f":
        return generator.random(shape).astype(kind)
    return generator.integers(0, 2 if kind.kind == "b" else 100, shape).astype(kind)


FILLINGS: dict[str, Callable[[tuple[int, ...], DType], Array]] = {
    "zeros": np.zeros,
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


def argument(text: str, *, with_elements: bool = True) -> Argument:
    """Return the argument that `[NAME=]VALUE` describes.

    VALUE is an array, `DTYPE[SHAPE]=FILLING` (zeros, ones, arange, random or full:NUMBER);
    a file, `@FILE` or `DTYPE@FILE`; or a number, plain or as `DTYPE(NUMBER)`. An array without
    a filling is full of zeros; without elements, it is an `array_spec`.
    """
    named = _NAMED.fullmatch(text.strip())
    filling = "zeros" if with_elements else ""
    if named:
        return Argument(named[1], _argument_value(named[2].strip(), text, filling), text)
    return Argument(None, _argument_value(text.strip(), text, filling), text)


def _argument_value(value: str, text: str, filling: str) -> Any:
    if match := _ARRAY.fullmatch(value):
        return _described_array(match[1], match[2], match[3] or filling, text)
    if match := _FILE.fullmatch(value):
        return numbers(match[2], dtype(match[1]) if match[1] else None)
    if match := _CAST.fullmatch(value):
        return _scalar(match[2], dtype(match[1]), text)
    number = _plain_number(value)
    if number is None:
        raise InputError(f"--arg {text!r} is not understood; {ARGUMENT_FORMS}")
    return number


def _described_array(kind_name: str, shape_text: str, filling: str, text: str) -> Array | ArraySpec:
    kind = dtype(kind_name)
    lengths = [whole_number(part) for part in shape_text.split(",")]
    shape = tuple(length for length in lengths if length is not None and length > 0)
    if len(shape) != len(lengths) or len(shape) > 3:
        raise InputError(f"--arg {text!r}: the shape is one to three sizes of at least 1")
    elements = 1
    for length in shape:
        elements *= length
    if elements > MAX_ELEMENTS:
        raise InputError(f"--arg {text!r}: an array has at most {MAX_ELEMENTS:,} elements")
    if not filling:
        return array_spec(shape, kind)
    if filling.startswith("full:"):
        return np.full(shape, _scalar(filling.removeprefix("full:"), kind, text), dtype=kind)
    if filling not in FILLINGS:
        known = ", ".join([*FILLINGS, "full:NUMBER"])
        raise InputError(
            f"--arg {text!r}: unknown filling {filling!r}{did_you_mean(filling, FILLINGS)} "
            f"(known: {known})"
        )
    return FILLINGS[filling](shape, kind)


def _plain_number(text: str) -> bool | int | float | None:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    whole = whole_number(text) if not re.search("[.eE]", text) else None
    return whole if whole is not None else _value(text)


def _scalar(text: str, kind: DType, context: str) -> Any:
    number = _plain_number(text.strip())
    if isinstance(number, float) and kind.kind != "f" and number.is_integer():
        number = int(number)
    if number is None or not _fits(number, kind):
        raise InputError(f"--arg {context!r}: {text!r} is not a value of {kind}")
    return kind.type(number)


def bound(arguments: Sequence[Argument], parameters: Sequence[str], kernel: str) -> list[Any]:
    """Return the values in the order of a kernel's parameters; those without a name fill up."""
    values: dict[str, Any] = {}
    for given in arguments:
        if given.name is None:
            continue
        if given.name not in parameters:
            raise InputError(
                f"{kernel} has no argument {given.name!r}"
                f"{did_you_mean(given.name, parameters)} (it takes {', '.join(parameters)})"
            )
        if given.name in values:
            raise InputError(f"argument {given.name} of {kernel} is given twice")
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
            f"give {'them' if plural else 'it'} with --arg, for example --arg {missing[0]}=4096"
        )
    return [values[name] for name in parameters]


def names_a_file(text: str) -> bool:
    """Return whether a kernel is given as `path/to/file.py:function` rather than by name."""
    return ".py:" in text or text.endswith(".py") or "/" in text or "\\" in text


def kernel_of_file(text: str) -> Kernel:
    """Return the kernel that `path/to/file.py:function` names.

    Without `:function` the file must have one kernel. Raises InputError where the file
    does not import or has no such kernel, KernelSourceError for what the dialect lacks.
    """
    path_text, colon, function = text.rpartition(":")
    if not colon or function.endswith(".py"):
        path_text, function = text, ""
    path = Path(path_text)
    if not path.is_file():
        raise InputError(f"there is no file {path} (a kernel of your own is FILE.py:FUNCTION)")
    module = _imported(path)
    kernels = {
        name: value
        for name, value in module.items()
        if isinstance(value, Kernel) and not value.device
    }
    if not function:
        if len(kernels) == 1:
            return next(iter(kernels.values()))
        listed = f": {', '.join(kernels)}" if kernels else ""
        raise InputError(f"{path} has {len(kernels)} kernels{listed}; say which, {path}:NAME")
    if function not in module:
        has = f" (it has {', '.join(kernels)})" if kernels else " (it has no kernel)"
        raise InputError(f"{path} has no {function!r}{did_you_mean(function, kernels)}{has}")
    value = module[function]
    if not isinstance(value, Kernel):
        what = "a plain function" if callable(value) else f"a {type(value).__name__}"
        raise InputError(f"{function} in {path} is {what}, no kernel; decorate it with @cuda.jit")
    if value.device:
        raise InputError(f"{function} in {path} is a device function; only kernels are launched")
    return value


def _imported(path: Path) -> dict[str, Any]:
    """Run a file as a module, with its directory importable, and return its names."""
    name = f"gpusim_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file; a kernel of your own is FILE.py:FUNCTION")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except GpusimError:
        raise
    except SystemExit:
        raise InputError(f"{path} does not import: it calls exit") from None
    except Exception as error:
        where = _line_in(error, path)
        raise InputError(f"{path}{where} does not import: {_one_line(error)}") from None
    finally:
        sys.path.pop(0)
    return vars(module)


def _line_in(error: Exception, path: Path) -> str:
    """Return ", line N" for the last place of the error that lies in the file."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}" if error.lineno else ""
    line = 0
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(path.resolve()):
            line = step.tb_lineno
        step = step.tb_next
    return f", line {line}" if line else ""


def _one_line(error: Exception) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
