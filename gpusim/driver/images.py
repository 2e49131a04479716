"""Images of code that a program loads: a cubin, a fat binary with several, or PTX.

PTX is compiled by ptxas, or by nvJitLink where that is installed. Compressed members of a fat
binary are not read: how they are compressed is documented nowhere.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gpusim.driver import status
from gpusim.errors import GpusimError
from gpusim.host.disk_cache import DiskCache, key
from gpusim.launch.grid import ComputeCapability
from gpusim.sass import wheels

_ELF, _FATBIN = b"\x7fELF", 0xBA55ED50
_MEMBER = struct.Struct("<HHIQIIHHIIIQ")  # kind, version, header size, size, ... flags
_PTX_KIND, _ELF_KIND = 1, 2
_LONGEST_S = 600
_KEPT = DiskCache("ptx", most_bytes=1 << 28)


class ImageError(GpusimError):
    """An image without code for the device, with the driver's status for it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.status = code


class Member(NamedTuple):
    """A member of a fat binary: its kind, architecture and bytes."""

    kind: int
    arch: int
    is_compressed: bool
    held: bytes


def cubin_of(image: bytes, cc: ComputeCapability) -> bytes:
    """Return the machine code in an image for a GPU of `cc`; ImageError where there is none."""
    if image.startswith(_ELF):
        return image
    if len(image) >= 16 and struct.unpack_from("<I", image)[0] == _FATBIN:
        return _chosen(list(members(image)), cc)
    text = image.rstrip(b"\0")
    if b".version" in text[: 1 << 16] and b".target" in text[: 1 << 16]:
        return assembled(text, cc)
    raise ImageError("a module is neither a cubin, a fat binary nor PTX", status.INVALID_IMAGE)


def members(image: bytes) -> Iterator[Member]:
    """Yield the members of a fat binary, as far as its headers can be read."""
    _, _, place, size = struct.unpack_from("<IHHQ", image)
    end = min(place + size, len(image))
    while place + _MEMBER.size <= end:
        kind, _, header, length, *_, arch, _, _, _ = _MEMBER.unpack_from(image, place)
        if header < _MEMBER.size:
            return
        held = image[place + header : place + header + length]
        is_known = held.startswith(_ELF) or b".version" in held[: 1 << 16]
        yield Member(kind, arch, not is_known, held)
        place += header + length


def _chosen(found: list[Member], cc: ComputeCapability) -> bytes:
    """Return the best machine code for a GPU: its generation's, else PTX of an older one."""
    own = 10 * cc.major + cc.minor
    cubins = [o for o in found if o.kind == _ELF_KIND and o.arch // 10 == cc.major]
    texts = [o for o in found if o.kind == _PTX_KIND and o.arch <= own]
    fitting = [one for one in cubins if one.arch <= own] or texts
    readable = [one for one in (*fitting, *texts) if not one.is_compressed]
    if readable:
        best = max(readable, key=lambda one: (one.kind, one.arch))
        return best.held if best.kind == _ELF_KIND else assembled(best.held.rstrip(b"\0"), cc)
    if fitting:
        raise ImageError(
            "a fat binary is compressed, in a way that is documented nowhere; compile with nvcc "
            "-no-compress (gpusim's nvcc does)",
            status.INVALID_IMAGE,
        )
    listed = ", ".join(sorted({f"sm_{one.arch}" for one in found})) or "nothing"
    raise ImageError(
        f"a fat binary has code for {listed}, not for sm_{own}; compile for it, or choose another "
        "--device",
        status.NO_BINARY,
    )


def assembled(text: bytes, cc: ComputeCapability) -> bytes:
    """Return PTX as machine code for a GPU; kept on disk. ImageError where that cannot be."""
    program = assembler()
    arch = f"sm_{cc.major}{cc.minor}" + ("a" if b"a\n" in _target(text) else "")
    name = key([wheels.stamp(program), arch, text.decode(errors="replace")])
    made = _KEPT.load(name)
    if made is None:
        made = _assembled(program, text, arch)
        _KEPT.store(name, made)
    return made


def _target(text: bytes) -> bytes:
    """Return the line that names the architecture, which ends in "a" for one generation's own."""
    line = text.partition(b".target")[2].partition(b"\n")[0].split(b",")[0]
    return line.strip() + b"\n"


def assembler() -> Path:
    """Return ptxas, of a wheel, a toolkit or the path; ImageError where there is none."""
    for folder in wheels.folders("bin"):
        if (folder / "ptxas").is_file():
            return folder / "ptxas"
    found = shutil.which("ptxas")
    if found is None:
        raise ImageError(
            "a program brings PTX, and there is no ptxas to compile it: pip install "
            "nvidia-cuda-nvcc",
            status.NO_PTX_COMPILER,
        )
    return Path(found)


def _assembled(program: Path, text: bytes, arch: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "module.ptx", Path(folder) / "module.cubin"
        source.write_bytes(text)
        command = [str(program), f"-arch={arch}", str(source), "-o", str(made)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_LONGEST_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ImageError(f"ptxas cannot be run: {error}", status.NO_PTX_COMPILER) from None
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()[:3]
            raise ImageError(f"ptxas refuses PTX: {' / '.join(said)}", status.INVALID_PTX)
        return made.read_bytes()
