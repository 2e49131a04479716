"""Twins in CUDA C++: every kernel that was measured has one, and NVIDIA's compiler takes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from fake_gpu import FakeCompiler, FakeDriver

from gpusim.catalogue import Setup, entries, find
from gpusim.gpu import device
from validate import files, nvrtc, twins
from validate.backend import PycudaBackend
from validate.calibrate import calibrate
from validate.nvrtc import NvrtcMissingError
from validate.twins import TwinError

ARCH = "sm_90a"
FILES = sorted({twins.file_of(entry) for entry in twins.twinned()})


def setups_of(file: str) -> Iterator[Setup]:
    """Each kernel of a file: all types, all operations, and the least and greatest block."""
    for entry in twins.twinned():
        if twins.file_of(entry) == file:
            first, block = entry.dtypes[0], entry.block_rule.nearest(entry.default_block)[0]
            chosen = [(dtype, "sum", block) for dtype in entry.dtypes]
            chosen += [(first, operation, block) for operation in entry.operations]
            chosen += [(first, "sum", size) for size in (64, entry.block_rule.most)]
            for dtype, operation, size in chosen:
                yield entry.setup(64, block=size, operation=operation, dtype=dtype)


@pytest.fixture(scope="module")
def compiler() -> None:
    try:
        nvrtc.library()
    except NvrtcMissingError as error:
        pytest.skip(str(error))


def test_every_kernel_that_was_measured_has_a_twin() -> None:
    measured = {one.kernel for name in files.names() for one in files.load(name).times}
    here = {entry.name for entry in entries()}
    assert len(measured & here) > 20
    assert measured & here <= {entry.name for entry in twins.twinned()}


def test_a_kernel_without_a_twin_is_named() -> None:
    entry = replace(find("reduce1"), name="reduce0")
    with pytest.raises(TwinError, match=r"^reduce0 has no twin: validate/kernels/reduce\.cu"):
        twins.file_of(entry)


@pytest.mark.parametrize("file", FILES)
def test_every_twin_compiles(file: str, compiler: None) -> None:
    expressions = sorted({twins.twin_of(setup).expression for setup in setups_of(file)})
    made = nvrtc.compile_file(file, expressions, ARCH)
    assert made.cubin.startswith(b"\x7fELF")
    for expression, name in made.names.items():
        kernel = expression.partition("<")[0]
        assert name.startswith(f"_Z{len(kernel)}{kernel}I")
        assert name.encode() in made.cubin


@pytest.fixture
def microbenchmarks() -> dict[str, list[str]]:
    """By file what `calibrate` has compiled, asked for by running it on the fake GPU."""
    asked = FakeCompiler()
    calibrate(PycudaBackend(FakeDriver(), asked, warm_up_us=1.0), device.load("h200"))
    by_file: dict[str, list[str]] = {}
    for twin in asked.compiled:
        by_file.setdefault(twin.file, []).append(twin.expression)
    assert {file for file in by_file if file.startswith("probe_kernels/")}
    return by_file


def test_a_microbenchmark_of_each_file_compiles(
    compiler: None, microbenchmarks: dict[str, list[str]]
) -> None:
    for file, (first, *_) in microbenchmarks.items():
        assert set(nvrtc.compile_file(file, [first], ARCH).names) == {first}


@pytest.mark.slow
def test_every_microbenchmark_compiles(
    compiler: None, microbenchmarks: dict[str, list[str]]
) -> None:
    for file, expressions in microbenchmarks.items():
        assert set(nvrtc.compile_file(file, expressions, ARCH).names) == set(expressions)


def test_a_twin_that_does_not_compile_is_refused_in_the_compilers_words(compiler: None) -> None:
    with pytest.raises(TwinError, match=r"(?s)^broken\.cu does not compile:\n.*no_such_type"):
        nvrtc.compile_text(
            "__global__ void broken(no_such_type *) {}", "broken.cu", [], [f"-arch={ARCH}"]
        )
