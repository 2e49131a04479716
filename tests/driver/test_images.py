"""Images of code: the best machine code of a fat binary is taken, and the rest refused in words."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from gpusim.driver import status
from gpusim.driver.images import ImageError, cubin_of, members
from gpusim.launch.grid import ComputeCapability
from gpusim.sass import wheels

H200 = ComputeCapability(9, 0)
PTX, ELF = 1, 2


def member(kind: int, arch: int, held: bytes) -> bytes:
    head = struct.pack("<HHIQIIHHIIIQ", kind, 0x101, 64, len(held), 0, 0, 0, 0, arch, 0, 0, 0)
    return head.ljust(64, b"\0") + held


def fat_binary(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def elf(mark: bytes) -> bytes:
    return b"\x7fELF" + mark


def test_a_cubin_is_taken_as_it_is() -> None:
    assert cubin_of(elf(b"one"), H200) == elf(b"one")


def test_of_a_fat_binary_the_newest_code_that_the_gpu_runs_is_taken() -> None:
    image = fat_binary(
        member(ELF, 80, elf(b"80")), member(ELF, 90, elf(b"90")), member(ELF, 100, elf(b"100"))
    )
    assert [one.arch for one in members(image)] == [80, 90, 100]
    assert cubin_of(image, H200) == elf(b"90")
    assert cubin_of(image, ComputeCapability(8, 6)) == elf(b"80")


@pytest.mark.parametrize(
    ("image", "code", "words"),
    [
        (b"nonsense", status.INVALID_IMAGE, "neither a cubin, a fat binary nor PTX"),
        (fat_binary(member(ELF, 80, elf(b""))), status.NO_BINARY, "has code for sm_80, not for"),
        (fat_binary(), status.NO_BINARY, "has code for nothing"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(image: bytes, code: int, words: str) -> None:
    with pytest.raises(ImageError, match=words) as caught:
        cubin_of(image, H200)
    assert caught.value.status == code


COMPRESSED = fat_binary(member(ELF, 90, b"\x28\xb5\x2f\xfd"))


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in place of the wheels' programs."""
    monkeypatch.setattr(wheels, "folders", lambda wanted: [tmp_path])
    return tmp_path


def test_compressed_code_is_extracted_by_cuobjdump(tools: Path) -> None:
    program = tools / "cuobjdump"
    program.write_text(
        "#!/bin/sh\n[ $1 = --extract-elf ] && printf '\\177ELF' > code.1.sm_90.cubin\n"
    )
    program.chmod(0o755)
    assert cubin_of(COMPRESSED, H200) == b"\x7fELF"


def test_without_cuobjdump_compressed_code_is_refused(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(ImageError, match="pip install nvidia-cuda-cuobjdump") as error:
        cubin_of(COMPRESSED, H200)
    assert error.value.status == status.INVALID_IMAGE
