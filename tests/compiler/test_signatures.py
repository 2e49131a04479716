"""numba's types, signatures, options and words: what is taken, and what is said of the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda, float32, float64, int32, int64, void
from gpusim.compiler.signatures import ArrayType, Signature, signatures
from gpusim.errors import GpusimError, KernelSourceError, LaunchError

LONG_ARRAY = ArrayType(np.dtype(np.int64), 1)


def test_a_signature_gives_the_parameters_their_types() -> None:
    @cuda.jit("void(int64[:], int64)")
    def square(out, n):
        out[0] = n * n

    out = np.zeros(1, np.int64)
    square[1, 1](out, 100000)
    assert out[0] == 10_000_000_000


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("void(int64[:], int64)", "void(int64[:], int64)"),
        ("(i8[:], f4)", "void(int64[:], float32)"),
        ("none(float64[:, ::1], boolean)", "void(float64[:, ::1], boolean)"),
        (void(int64[:], float32[::1, :]), "void(int64[:], float32[::1, :])"),
        ((int64[:], "int32[:, :, :]"), "void(int64[:], int32[:, :, :])"),
        ("float32(float32, float32)", "float32(float32, float32)"),
        (float64(int32), "float64(int32)"),
    ],
)
def test_signatures_are_text_objects_or_tuples_of_types(given: Any, written: str) -> None:
    assert [str(one) for one in signatures(given)] == [written]
    assert signatures([given, given]) == signatures(given) * 2


def test_objects_of_numba_itself_are_known_by_their_attributes() -> None:
    """A stand-in for numba's own, which need not be installed."""
    of_numba = {"__module__": "numba.core.types.scalars", "__str__": lambda self: self.name}
    number: Any = type("Float", (SimpleNamespace,), of_numba)
    array: Any = type("Array", (SimpleNamespace,), of_numba)
    single = number(name="float32")
    many = array(dtype=number(name="int64"), ndim=1, layout="A")
    given = SimpleNamespace(args=(many, single), return_type=number(name="none"))
    assert signatures(given) == (Signature((LONG_ARRAY, float32)),)

    @cuda.jit
    def kernel(out, x):
        shared = cuda.shared.array(1, single)
        shared[0] = x
        out[0] = shared[0] + single(x)

    out = np.zeros(1)
    kernel[1, 1](out, 0.1)
    assert out[0] == np.float32(0.1) + np.float32(0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(1, np.int32), 5), r"takes no int32\[:\] as 'out', but int64\[:\]"),
        ((np.zeros((1, 1), np.int64), 5), r"takes no int64\[:, :\] as 'out'"),
        ((np.zeros(1, np.int64), 2.5), "takes no 2.5 as 'n', but int16"),
        ((np.zeros(1, np.int64), 40000), "takes no 40000 as 'n', but int16"),
        ((5, 5), "takes no 5 as 'out'"),
    ],
)
def test_arguments_that_a_signature_does_not_take_are_refused(arguments: Any, message: str) -> None:
    @cuda.jit("void(int64[:], int16)")
    def kernel(out, n):
        out[0] = n

    with pytest.raises(LaunchError, match=message):
        kernel[1, 1](*arguments)


def test_of_several_signatures_the_first_that_fits_is_taken() -> None:
    @cuda.jit([void(int64[:], int32), void(int64[:], int64), void(int64[:], float64)])
    def kernel(out, x):
        out[0] = x * x * 2

    out = np.zeros(1, np.int64)
    found = []
    for x in (50000, 5_000_000_000 // 100_000, 3_000_000_000, 1.5):
        kernel[1, 1](out, x)
        found.append(int(out[0]))
    int32s = (50000**2 * 2 + 2**31) % 2**32 - 2**31
    int64s = (3_000_000_000**2 * 2 + 2**63) % 2**64 - 2**63
    assert found == [int32s, int32s, int64s, 4]


def test_a_device_function_converts_as_its_signature_says() -> None:
    @cuda.jit("float32(float32, int64[:])", device=True)
    def first(x, array):
        return x + array[0] * 0.1

    @cuda.jit(void(int64[:], float64[:]))
    def kernel(a, out):
        out[0] = first(1, a)

    out = np.zeros(1)
    kernel[1, 1](np.array([1]), out)
    assert out[0] == np.float32(1) + np.float32(0.1)

    @cuda.jit
    def wrong(out):
        out[0] = first(out, out)

    with pytest.raises(KernelSourceError, match=r"do not fit first's signature float32\(float32, "):
        wrong[1, 1](out)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("void(int64[:], strange)", "'strange' .* is not a type of kernels: boolean, int8"),
        ("void(", "a signature is written as"),
        ("int64[2:]", "a signature is written as"),
        ("void(int64[:])", "has 1 types; kernel takes 2 arguments"),
        ("int64(int64[:], int64)", "has a result; a kernel gives none"),
        (7, "a signature is written as"),
        ("(" * 200, "a signature is written as"),
        ([("int8", 5)], "5 is not a type"),
    ],
)
def test_what_is_no_signature_is_refused_when_the_kernel_is_decorated(
    given: Any, message: str
) -> None:
    def kernel(out, n):
        out[0] = n

    with pytest.raises(GpusimError, match=message):
        cuda.jit(given)(kernel)


def test_options_that_change_no_result_are_taken_and_others_are_named() -> None:
    steering = {"debug": True, "opt": False, "fastmath": True, "inline": "always"}

    @cuda.jit(lineinfo=True, cache=True, max_registers=32, **steering)
    def kernel(out):
        out[0] = 1

    kernel[1, 1](np.zeros(1))
    with pytest.raises(GpusimError, match="no option link; it takes a signature, device=True"):
        cuda.jit(link=["a.cu"])


def test_forall_gives_each_task_a_thread() -> None:
    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        if i < len(out):
            out[i] = cuda.blockDim.x

    out = np.zeros(300, np.int32)
    kernel.forall(300)(out)
    assert out.tolist() == [128] * 300
    kernel.forall(len(out), tpb=32)(out)
    cuda.synchronize()
    assert out.tolist() == [32] * 300
    assert cuda.is_available()


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        ("to_device", "pass NumPy arrays"),
        ("stream", "remove it"),
        ("syncthread", "did you mean cuda.syncthreads"),
        ("nowhere_near", "docs/dialect.md"),
    ],
)
def test_a_word_that_is_lacking_says_what_to_write_instead(word: str, instead: str) -> None:
    assert not hasattr(cuda, word)
    with pytest.raises(GpusimError, match=rf"cuda has no '{word}' here: .*{instead}"):
        getattr(cuda, word)


def test_a_word_that_is_lacking_in_a_kernel_is_marked() -> None:
    @cuda.jit
    def kernel(out):
        cuda.atomic.inc(out, 0, 5)

    with pytest.raises(KernelSourceError, match=r"cuda\.atomic has no 'inc' here: write") as caught:
        kernel[1, 1](np.zeros(1))
    assert "^" in str(caught.value)


def test_an_uncaught_refusal_shows_the_users_line_and_the_message(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\n"
        "from gpusim import cuda\n"
        "@cuda.jit\n"
        "def kernel(out):\n"
        "    out[cuda.grid(1)] = 1\n"
        "kernel[1, 64](np.zeros(3))  # here\n",
        encoding="utf-8",
    )
    package = Path(gpusim.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=package, check=False,
        env={"PYTHONPATH": str(package)},
    )  # fmt: skip
    lines = done.stderr.splitlines()
    assert sum(line.startswith("  File ") for line in lines) == 2
    assert lines[2].strip() == "kernel[1, 64](np.zeros(3))  # here"
    assert "line 5: out[3] is out of bounds" in lines[-1]
