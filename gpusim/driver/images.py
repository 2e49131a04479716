"""Images of code that a program loads: a cubin, a fat binary with several, or PTX.

PTX is compiled by ptxas, and several parts are linked by nvlink. Compressed members of a fat
binary are extracted by cuobjdump, the toolkit's tool for it: how they are compressed is documented
nowhere.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gpusim.driver import status
from gpusim.errors import GpusimError
from gpusim.host import processes, temporary
from gpusim.host.disk_cache import DiskCache, key
from gpusim.launch.grid import ComputeCapability
from gpusim.sass import wheels

_ELF, _FATBIN = b"\x7fELF", 0xBA55ED50
_MEMBER = struct.Struct("<HHIQIIHHIIIQ")  # kind, version, header size, size, ... flags
_PTX_KIND, _ELF_KIND = 1, 2
_LONGEST_S = 600
_PART = struct.Struct("<QQ")
_CUBIN_INPUT, _PTX_INPUT, _FATBIN_INPUT = 0, 1, 2
_SUFFIXES = {
    _CUBIN_INPUT: ".cubin", _PTX_INPUT: ".cubin", _FATBIN_INPUT: ".fatbin", 3: ".o", 4: ".a",
}  # fmt: skip
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
        return _chosen(list(members(image)), cc, image)
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
        # Compressed text has its first words as they are, and zeros among them.
        text = held[: 1 << 16].rstrip(b"\0")
        is_known = held.startswith(_ELF) or (b".version" in text and b"\0" not in text)
        yield Member(kind, arch, not is_known, held)
        place += header + length


def _chosen(found: list[Member], cc: ComputeCapability, image: bytes) -> bytes:
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
        return _chosen(extracted(image), cc, b"")
    listed = ", ".join(sorted({f"sm_{one.arch}" for one in found})) or "nothing"
    raise ImageError(
        f"a fat binary has code for {listed}, not for sm_{own}; compile for it, or choose another "
        "--device",
        status.NO_BINARY,
    )


def extracted(image: bytes) -> list[Member]:
    """Return the members of a compressed fat binary; ImageError where cuobjdump is not there."""
    if not image:
        raise ImageError("cuobjdump finds no code in a fat binary", status.INVALID_IMAGE)
    program = _tool("cuobjdump")
    if program is None:
        raise ImageError(
            "a fat binary is compressed, and there is no cuobjdump to extract its code: pip "
            "install nvidia-cuda-cuobjdump, or compile with nvcc -no-compress (gpusim's nvcc does)",
            status.INVALID_IMAGE,
        )
    with temporary.folder() as folder:
        (Path(folder) / "code.fatbin").write_bytes(image)
        for wanted in ("--extract-elf", "--extract-ptx"):  # either may find nothing, and fail then
            _run([str(program), wanted, "all", "code.fatbin"], folder, "cuobjdump")
        made = sorted(Path(folder).glob("*.sm_*"))
        return [Member(*_named(one), False, one.read_bytes()) for one in made]


def _named(file: Path) -> tuple[int, int]:
    """Return the kind and architecture of an extracted file by its name."""
    arch = re.search(r"\.sm_(\d+)", file.name)
    return (_PTX_KIND if file.suffix == ".ptx" else _ELF_KIND), int(arch[1]) if arch else 0


def assembled(text: bytes, cc: ComputeCapability) -> bytes:
    """Return PTX as machine code for a GPU; kept on disk. ImageError where that cannot be."""
    program = assembler()
    name = key([wheels.stamp(program), cc.target, text.decode(errors="replace")])
    made = _KEPT.load(name)
    if made is None:
        made = _assembled(program, text, cc.target)
        _KEPT.store(name, made)
    return made


def assembler() -> Path:
    """Return ptxas, of a wheel, a toolkit or the path; ImageError where there is none."""
    found = _tool("ptxas")
    if found is None:
        raise ImageError(
            "a program brings PTX, and there is no ptxas to compile it: pip install "
            "nvidia-cuda-nvcc",
            status.NO_PTX_COMPILER,
        )
    return found


def _tool(name: str) -> Path | None:
    """Return a program of the toolkit: of a wheel, a toolkit or the path."""
    for folder in wheels.folders("bin"):
        if (folder / name).is_file():
            return folder / name
    found = shutil.which(name)
    return None if found is None else Path(found)


def _assembled(program: Path, text: bytes, arch: str, *options: str) -> bytes:
    with temporary.folder() as folder:
        (Path(folder) / "module.ptx").write_bytes(text)
        command = [str(program), f"-arch={arch}", *options, "module.ptx", "-o", "module.cubin"]
        said = _run(command, folder, "ptxas")
        if said is not None:
            raise ImageError(f"ptxas refuses PTX: {said}", status.INVALID_PTX)
        return (Path(folder) / "module.cubin").read_bytes()


def _run(command: Sequence[str], folder: str, name: str) -> str | None:
    """Run a program of the toolkit in a folder; return its words where it fails."""
    try:
        done = processes.run(command, _LONGEST_S, Path(folder), cwd=folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ImageError(f"{name} cannot be run: {error}", status.NO_PTX_COMPILER) from None
    if not done.returncode:
        return None
    return " / ".join((done.stderr or done.stdout).strip().splitlines()[:3])


def linked(parts: bytes, cc: ComputeCapability) -> bytes:
    """Return parts as one cubin: each a kind (CUjitInputType), its length, and its bytes."""
    found = list(_inputs(parts))
    if len(found) == 1 and found[0][0] in (_CUBIN_INPUT, _PTX_INPUT, _FATBIN_INPUT):
        return cubin_of(found[0][1], cc)
    program = _tool("nvlink")
    if program is None:
        raise ImageError(
            "a program links code, and there is no nvlink: pip install nvidia-cuda-nvcc",
            status.NO_PTX_COMPILER,
        )
    # Code for sm_90a is not linked with code that others compiled for sm_90.
    is_text = all(kind == _PTX_INPUT for kind, _ in found)
    arch = cc.target if is_text else cc.target.removesuffix("a")
    with temporary.folder() as folder:
        names = []
        for number, (kind, held) in enumerate(found):
            if kind not in _SUFFIXES:
                raise ImageError(f"parts of kind {kind} are not linked", status.NOT_SUPPORTED)
            text = held.rstrip(b"\0")
            code = _assembled(assembler(), text, arch, "-c") if kind == _PTX_INPUT else held
            names.append(f"part{number}{_SUFFIXES[kind]}")
            (Path(folder) / names[-1]).write_bytes(code)
        said = _run([str(program), f"-arch={arch}", *names, "-o", "whole"], folder, "nvlink")
        if said is not None:
            raise ImageError(f"nvlink refuses parts: {said}", status.INVALID_IMAGE)
        return (Path(folder) / "whole").read_bytes()


def _inputs(parts: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + _PART.size <= len(parts):
        kind, size = _PART.unpack_from(parts, place)
        place += _PART.size
        yield kind, parts[place : place + size]
        place += size
