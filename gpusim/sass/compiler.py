"""From CUDA C++ to machine code and its listing, by NVIDIA's compiler and disassembler."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from gpusim.cuda_cpp.host_headers import host_headers
from gpusim.cuda_cpp.includes import includes
from gpusim.errors import GpusimError, InputError
from gpusim.host.disk_cache import key
from gpusim.launch.grid import ComputeCapability
from gpusim.sass import cache, wheels
from gpusim.sass.cache import Lookup

WORKER, LOOKUPS, BOUNDED = (
    Path(__file__).parent / name for name in ("worker.py", "lookups.py", "bounded.py")
)
LIMIT_S = 120
DISASSEMBLED_BYTES_PER_S = 50_000
PATIENCE = 10  # times the limit on seconds, on a busy machine
LISTED = ("-c", "-gi", "-gp")  # code alone, with lines of the source and of PTX
WITHOUT_FLOW = "-ndf"  # no data flow analysis, a quarter of the time: targets of jump tables alone
MOST_WORDS = 300
OWN = "the compiler's output"
# Limits on time, output and waiting: signals that end a program by force.
OUT_OF_BOUNDS = (signal.SIGXCPU, signal.SIGXFSZ, signal.SIGKILL)
INCLUDE = "--include-path="
# Architectures with machine code that the table of mnemonics covers.
ARCHITECTURES = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
# Macros of the host's <math.h> that nvcc has in every file, and NVRTC lacks.
MACROS = {
    "INFINITY": "__builtin_bit_cast(float,0x7f800000)",
    "NAN": "__builtin_bit_cast(float,0x7fffffff)",
    "HUGE_VALF": "INFINITY", "HUGE_VAL": "((double)INFINITY)",
    "M_E": "2.7182818284590452354", "M_LOG2E": "1.4426950408889634074",
    "M_LOG10E": "0.43429448190325182765", "M_LN2": "0.69314718055994530942",
    "M_LN10": "2.30258509299404568402", "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923", "M_PI_4": "0.78539816339744830962",
    "M_1_PI": "0.31830988618379067154", "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390", "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440",
}  # fmt: skip
# What nvcc has from the host's compiler and library, and NVRTC has not.
_WORDS_HEADER = "words_of_nvcc.h"
_WORDS_OF_NVCC = frozenset({
    "uchar", "ushort", "uint", "ulong", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t",
    "uint16_t", "uint32_t", "uint64_t", "intptr_t", "uintptr_t", "__FLT_MAX__", "__FLT_MIN__",
    "__FLT_EPSILON__", "__DBL_MAX__", "__DBL_MIN__", "__DBL_EPSILON__", "__INT_MAX__", "FLT_MAX",
    "FLT_MIN", "FLT_EPSILON", "DBL_MAX", "DBL_MIN", "DBL_EPSILON", "INT_MAX", "INT_MIN", "UINT_MAX",
    "LONG_MAX", "LLONG_MAX", "ULLONG_MAX",
})  # fmt: skip
_TABLE_JUMP = re.compile(r"\b(?:BRX|JMX)")
_UNDECLARED = re.compile(r'identifier "(\w+)" is undefined')
_NO_HEADER = re.compile(r'(?:could not open source file|cannot open source file) "([^"]+)"')


class Limits(NamedTuple):
    """Limits of the disassembler: seconds of a core and bytes of a listing, more for large code.

    A file of 10 MB takes 7 s.
    """

    seconds: int = 20
    listing_bytes: int = 1 << 26


LIMITS = Limits()


class CompileError(GpusimError):
    """Source that does not compile, in the compiler's own words, and its files if known."""

    def __init__(self, words: str, lookups: Sequence[Lookup] | None = None) -> None:
        super().__init__(words)
        self.lookups = lookups

    @property
    def missing_header(self) -> str:
        """The header that is not found, "" where that is not the reason."""
        found = _NO_HEADER.search(str(self))
        return found[1] if found is not None else ""

    @property
    def count(self) -> int:
        """The number of errors in the compiler's words."""
        return str(self).count(" error:")


@dataclass(frozen=True)
class Options:
    """How source is compiled: folders of headers, definitions, and the language's standard.

    `debug` is nvcc's -G: without optimisation. With `relocatable`, its -rdc=true, functions have
    sections of their own, for a linker.
    """

    includes: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    standard: str = "c++17"
    debug: bool = False
    relocatable: bool = False


@dataclass(frozen=True)
class Headers:
    """In place of headers: texts of the user's own by path, and contents of others by name."""

    texts: Mapping[str, str] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # of those contents, empty ones that are nowhere found


@dataclass(frozen=True)
class Compiled:
    """Machine code, its PTX, and the name in it of each expression requested.

    `lookups` are the files that it depends on, None if unknown.
    """

    cubin: bytes
    ptx: str
    names: Mapping[str, str]
    generator: str
    lookups: Sequence[Lookup] | None = None

    @cached_property
    def listing(self) -> str:
        """The listing of the machine code, from the disassembler or the disk."""
        return listing_of(self.cubin)


def architecture(cc: ComputeCapability) -> str:
    """Return the compiler's name for a GPU's machine code; InputError where none can be made."""
    if str(cc) not in ARCHITECTURES:
        raise InputError(
            f"machine code for compute capability {cc} is not known here; known are "
            f"{', '.join(ARCHITECTURES)}"
        )
    return cc.target


def compiled(
    text: str,
    file: str,
    expressions: Sequence[str],
    arch: str,
    options: Options = Options(),
    replaced: Headers = Headers(),
) -> Compiled:
    """Compile CUDA C++; `file` is its name in messages and lines.

    Raises CompileError with the compiler's words, and CompilerMissingError where there is none.
    """
    library, program = wheels.library(), wheels.disassembler()
    folders = folders_of(file, options)
    theirs = wheels.headers()
    headers = list(map(str, theirs))
    contents = {**host_headers(folders, theirs), **replaced.contents}
    arguments = [
        f"--gpu-architecture={arch}",
        f"--std={options.standard}",
        "--device-debug" if options.debug else "-lineinfo",
        *(("--relocatable-device-code=true",) if options.relocatable else ()),
        "--device-int128",
        "--disable-warnings",
        *(f"--define-macro={name}={value}" for name, value in MACROS.items()),
        *(f"--define-macro={definition}" for definition in options.definitions),
        *(("--device-as-default-execution-space",) if replaced != Headers() else ()),
        *(f"{INCLUDE}{folder}" for folder in [*folders, *headers]),
    ]
    stamps = [wheels.stamp(one) for one in (library, program, WORKER, LOOKUPS)]
    searched = [str(Path(folder).resolve()) for folder in folders]
    own = [part for pair in (*contents.items(), *replaced.texts.items()) for part in pair]
    name = key([*stamps, *LISTED, text, file, *expressions, *arguments, *searched, *own])
    entry = cache.load(name, headers)
    if entry is not None and "error" in entry:
        raise CompileError(entry["error"], _lookups(entry))
    if entry is None:
        try:
            entry = _made(text, file, expressions, arguments, library, contents, replaced.texts)
        except CompileError as error:
            if error.lookups is not None:
                held = {"error": str(error), "lookups": error.lookups}
                cache.store(name, error.lookups, held)
            raise
        if entry["lookups"] is None:
            entry["lookups"] = _told(text, folders, options)
        if entry["lookups"] is not None:
            cache.store(name, entry["lookups"], entry)
    cubin, generator = base64.b64decode(entry["cubin"]), entry["generator"]
    if replaced.missing:
        generator += f", without {', '.join(replaced.missing)}"
    return Compiled(cubin, entry["ptx"], entry["names"], generator, _lookups(entry))


def _lookups(entry: Mapping[str, Any]) -> list[Lookup] | None:
    found = entry["lookups"]
    return None if found is None else [(path, is_read, held) for path, is_read, held in found]


def folders_of(file: str, options: Options) -> list[str]:
    """Return the folders of the user's own headers, in search order."""
    return [*options.includes, str(Path(file).resolve().parent)]


def _told(text: str, folders: Sequence[str], options: Options) -> list[Lookup] | None:
    """Return the files that a text depends on without the compiler's help, None where unsure."""
    found = includes(text, folders, options.definitions)
    asked = [(path, True) for path in found.asked]
    states = cache.states(asked, ())
    if not found.is_complete:
        return None
    return [(*one, held) for one, held in zip(asked, states, strict=True)]


def answered(
    text: str,
    file: str,
    expressions: Sequence[str],
    arguments: Sequence[str],
    library: Path,
    headers: Mapping[str, str] = {},
    replaced: Mapping[str, str] = {},
    limit_s: float = LIMIT_S,
) -> dict[str, Any]:
    """Return the compiler's answer for CUDA C++, from a process of its own.

    `headers` are contents by name, `replaced` those of files by path. "cubin" is base64, "names"
    are the expressions' names there, "version" is its own, "lookups" are its files. Raises
    CompileError with its words.
    """
    request = {
        "library": str(library), "text": text, "file": file, "expressions": list(expressions),
        "options": list(arguments), "headers": dict(headers), "replaced": dict(replaced),
        "stamped": [str(folder) for folder in wheels.headers()],
    }  # fmt: skip
    try:
        ran = subprocess.run(
            [sys.executable, "-I", "-S", str(WORKER)],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        raise CompileError(f"{file} takes longer than {limit_s} s to compile") from None
    try:
        answer = json.loads(ran.stdout)
    except ValueError:
        words = ran.stderr.strip().splitlines()
        raise CompileError(f"the compiler failed on {file}: {words[-1] if words else ''}") from None
    if "error" in answer:
        folders = [str(Path(file).resolve().parent), *_folders(arguments)]
        said = without_foreign_lines(answer["error"].strip(), file, folders)
        raise CompileError(_explained(file, said), answer["lookups"])
    made: dict[str, Any] = answer
    return made


def _folders(arguments: Sequence[str]) -> list[str]:
    return [one.removeprefix(INCLUDE) for one in arguments if one.startswith(INCLUDE)]


def _made(
    text: str,
    file: str,
    expressions: Sequence[str],
    arguments: Sequence[str],
    library: Path,
    headers: Mapping[str, str],
    replaced: Mapping[str, str],
) -> dict[str, Any]:
    try:
        answer = answered(text, file, expressions, arguments, library, headers, replaced)
    except CompileError as error:
        if _WORDS_OF_NVCC.isdisjoint(_UNDECLARED.findall(str(error))):
            raise
        more = [*arguments, f"--pre-include={_WORDS_HEADER}"]
        answer = answered(text, file, expressions, more, library, headers, replaced)
    return {**answer, "generator": f"NVRTC {answer['version']}"}


def _explained(file: str, words: str) -> str:
    text = f"{file} does not compile:\n{words}"
    missing = _NO_HEADER.search(words)
    if missing is None:
        return text
    wheel = wheels.wheel_of(missing[1])
    if wheel is None:
        return f"{text}\ngive the folder of {missing[1]} with -I FOLDER (includes=)"
    return f"{text}\n{missing[1]} comes with pip install {wheel}"


def listing_of(cubin: bytes, name: str = OWN) -> str:
    """Return the listing of a cubin, kept on disk; InputError as `disassembled` raises it."""
    stamp = wheels.stamp(wheels.disassembler())
    held = key([stamp, *LISTED, WITHOUT_FLOW, hashlib.sha256(cubin).hexdigest()])
    entry = cache.load(held, ())
    if entry is None:
        entry = {"listing": disassembled(cubin, name)}
        cache.store(held, (), entry)
    return str(entry["listing"])


def disassembled(
    cubin: bytes, name: str = OWN, program: Path | None = None, limits: Limits = LIMITS
) -> str:
    """Return the listing of a cubin; InputError, with its `name`, where the `program` makes none.

    Its time and memory are limited in proportion to the code: on some damage it never ends.
    """
    command = str(program or wheels.disassembler())
    limits = Limits(
        limits.seconds + len(cubin) // DISASSEMBLED_BYTES_PER_S,
        limits.listing_bytes + 200 * len(cubin),
    )
    listing = _listing(cubin, name, [command, *LISTED, WITHOUT_FLOW], limits)
    is_whole = not _TABLE_JUMP.search(listing)
    return listing if is_whole else _listing(cubin, name, [command, *LISTED], limits)


def _listing(cubin: bytes, name: str, command: Sequence[str], limits: Limits) -> str:
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as listing:
        file.write(cubin)
        file.flush()
        ended = _disassembly(file, listing, command, limits)
        listing.seek(0)
        if ended.returncode == 0:
            return listing.read().decode(errors="replace")
        words = ended.stderr.strip() or listing.read(MOST_WORDS) or b"it fails"
    if -ended.returncode in OUT_OF_BOUNDS:
        raise InputError(
            f"the disassembler does not come to an end with {name} (stopped after "
            f"{limits.seconds} s): it is damaged, or far from ordinary"
        )
    raise InputError(
        f"the disassembler does not read {name}: {words[:MOST_WORDS].decode(errors='replace')}"
    )


def _disassembly(
    cubin: BinaryIO, listing: BinaryIO, program: Sequence[str], limits: Limits
) -> subprocess.CompletedProcess[bytes]:
    bounded = [sys.executable, "-I", "-S", str(BOUNDED), *map(str, limits)]
    number = cubin.fileno()
    command = [*bounded, *program, f"/proc/self/fd/{number}"]
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=listing,
            stderr=subprocess.PIPE,
            pass_fds=[number],
            timeout=PATIENCE * limits.seconds,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -signal.SIGKILL, b"", b"")


# A source's `#include` may lead anywhere. Lines of files outside of its folder and of the folders
# of headers are left out of messages: they give only the place and kind of an error there.
_HEAD = re.compile(r"(?P<file>\S.*?)\((?P<line>\d+)\): (?P<words>.*)")
_QUOTED = re.compile(r'(?<!source file )"[^"]*"')  # but for a header that is not there
_DIRECTIVE = re.compile(r"(#error directive).*")
HIDDEN = "  (a line of a file outside of the source's folder; -I FOLDER, includes=, has it shown)"


def without_foreign_lines(words: str, file: str, folders: Sequence[str | Path]) -> str:
    """Return the words about `file` without lines of files that lie in none of the folders."""
    own = [Path(folder).resolve() for folder in folders]
    return "\n".join(_kept(words.split("\n"), file, own))


def _kept(lines: Sequence[str], file: str, own: Sequence[Path]) -> Iterator[str]:
    is_foreign = False
    for line in lines:
        if match := _HEAD.match(line):
            is_foreign = match["file"] != file and not _lies_in(match["file"], own)
            yield _masked(match) if is_foreign else line
            if is_foreign:
                yield HIDDEN
        elif not line.startswith(" ") or not is_foreign:
            is_foreign = is_foreign and bool(line)
            yield line


def _lies_in(file: str, own: Sequence[Path]) -> bool:
    try:
        path = Path(file).resolve()
    except (OSError, ValueError, RuntimeError):
        return False
    return any(path.is_relative_to(folder) for folder in own)


def _masked(head: re.Match[str]) -> str:
    words = _DIRECTIVE.sub(r"\1", _QUOTED.sub('"..."', head["words"]))
    return f"{head['file']}({head['line']}): {words}"
