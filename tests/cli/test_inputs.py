"""What users write becomes values, or a message that says what was expected."""

from __future__ import annotations

import signal
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from gpusim.cli import arguments, arrays, inputs
from gpusim.cli.references import Reference
from gpusim.cuda import Kernel
from gpusim.errors import InputError, KernelSourceError
from gpusim.launch.arguments import ArraySpec
from gpusim.launch.configured import MachineCode

KERNELS = """
import numpy as np
from gpusim import cuda

LIMIT = 3


@cuda.jit
def double(data, n):
    i = cuda.grid(1)
    if i < n:
        data[i] = data[i] * 2


@cuda.jit(device=True)
def twice(x):
    return x + x


def plain(data):
    return data
"""


@pytest.fixture
def kernel_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(KERNELS)
    return path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4096", 4096),
        ("4_096", 4096),
        ("2^20", 1048576),
        ("2**20", 1048576),
        ("2^20+1", 1048577),
        ("2^20-1", 1048575),
        ("1e6", 1000000),
        ("1.5e3", 1500),
    ],
)
def test_a_count_is_written_in_digits_as_a_power_or_with_an_exponent(text: str, value: int) -> None:
    assert inputs.count(text) == value


@pytest.mark.parametrize("text", ["", "many", "1.5", "2^", "^2", "0x10", "1e-3", "9^99999", "12a"])
def test_a_count_that_does_not_parse_is_refused_with_what_would_do(text: str) -> None:
    with pytest.raises(InputError, match=r"not a whole number; write 4096, 2\^20 or 1e6"):
        inputs.count(text)


def test_a_count_has_bounds() -> None:
    with pytest.raises(InputError, match="n must be at least 1, not 0"):
        inputs.count("0")
    with pytest.raises(InputError, match="n must be at least 1, not -5"):
        inputs.count("-5")
    with pytest.raises(InputError, match=r"n must be at most 2,147,483,647, not 2\^40"):
        inputs.count("2^40")


def test_commas_separate_alternatives_and_no_dimensions() -> None:
    with pytest.raises(InputError, match="write dimensions as 16x16 or 8x8x4"):
        inputs.sizes("8,8,4", "the block")
    assert inputs.blocks("64..256,8x8", "--block") == [64, 128, 256, "8x8"]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("256", (256,)), ("16x16", (16, 16)), ("8x8x4", (8, 8, 4)), ("2^10", (1024,)), ("0", (0,))],
)
def test_sizes_have_one_to_three_directions(text: str, sizes: tuple[int, ...]) -> None:
    assert inputs.sizes(text, "the block") == sizes


@pytest.mark.parametrize("text", ["", "16x", "axb", "1x2x3x4"])
def test_sizes_that_do_not_parse_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="such as 256 or 16x16"):
        inputs.sizes(text, "the block")


def test_an_unknown_data_type_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean float32"):
        inputs.dtype("flaot32")


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "values", "dtype"),
    [
        ("1 2 3\n", [1, 2, 3], "int32"),
        ("1,2\n3;4\n", [1, 2, 3, 4], "int32"),
        ("value\n1\n2\n", [1, 2], "int32"),
        ("# made by hand\n1\n\n2 # two\n", [1, 2], "int32"),
        ("1\n3000000000\n", [1, 3000000000], "int64"),
        ("1\n2.5\n-3e2\n", [1, 2.5, -300], "float64"),
        ("\ufeff7\n", [7], "int32"),
    ],
)
def test_text_is_read_in_the_narrowest_type_that_holds_it(
    tmp_path: Path, text: str, values: list[float], dtype: str
) -> None:
    read = arrays.numbers(write(tmp_path / "numbers.csv", text))
    assert read.tolist() == values
    assert read.dtype == dtype


def test_text_is_read_in_the_type_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "numbers.txt", "1 2 nan")
    read = arrays.numbers(path, np.dtype("float32"))
    assert read.dtype == np.float32
    assert np.isnan(read[2])


def test_a_numpy_file_keeps_type_and_shape_and_loses_foreign_byte_order(tmp_path: Path) -> None:
    path = tmp_path / "numbers.npy"
    np.save(path, np.arange(6, dtype=">i4").reshape(2, 3))
    read = arrays.numbers(path)
    assert read.dtype == np.int32
    assert read.dtype.isnative
    assert read.tolist() == [[0, 1, 2], [3, 4, 5]]


HEADER = "{{'descr': '<i4', 'fortran_order': False, 'shape': {}}}"


def npy(path: Path, header: str) -> Path:
    """Write a NumPy file of which there is no more than a header."""
    content = header.encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(content).to_bytes(2, "little") + content)
    return path


def test_files_that_do_not_hold_what_is_asked_for(tmp_path: Path) -> None:
    """Missing, a directory, empty, no numbers, cut short, of another type, beyond the type."""
    good = tmp_path / "good.npy"
    np.save(good, np.arange(4, dtype=np.float64))
    short = tmp_path / "short.npy"
    short.write_bytes(good.read_bytes()[:-5])
    objects = tmp_path / "objects.npy"
    np.save(objects, np.array([1 + 2j]))
    void = tmp_path / "void.npy"
    np.save(void, np.zeros(0, np.int32))
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"\xff\xfe\x00\x81")
    cases = [
        (tmp_path / "none.npy", None, "there is no such file"),
        (tmp_path, None, "is a directory"),
        (write(tmp_path / "empty.csv", ""), None, "holds no numbers"),
        (write(tmp_path / "empty.npy", ""), None, "is cut short"),
        (write(tmp_path / "words.txt", "to be\nor not"), None, "line 2: 'or' is not a number"),
        (write(tmp_path / "heading.csv", "value\n"), None, "holds no numbers"),
        (write(tmp_path / "comment.csv", "# nothing\n"), None, "holds no numbers"),
        (write(tmp_path / "mixed.csv", "1\n2\nx3\n"), None, "line 3: 'x3' is not a number"),
        (write(tmp_path / "half.csv", "1\n2.5\n"), "int32", "line 2: '2.5' does not fit in int32"),
        (write(tmp_path / "large.csv", "300\n"), "uint8", "line 1: '300' does not fit in uint8"),
        (write(tmp_path / "text.npy", "1 2 3"), None, "is not a NumPy file"),
        (short, None, "is not a NumPy file of numbers, or is cut short"),
        (objects, None, "holds complex128"),
        (void, None, "holds no numbers"),
        (binary, None, "is not a text file in UTF-8"),
        (good, "int32", "holds float64, but int32 is expected"),
        (write(tmp_path / "long.csv", "1\n" + "9" * 400), None, "'9999"),
        (write(tmp_path / "longer.csv", "1\n" + "9" * 5000), None, "is not a number"),
        (write(tmp_path / "above.csv", "1\n1e39"), "float32", "'1e39' does not fit in float32"),
        (write(tmp_path / "huge.csv", "1\n1e400"), None, "line 2: '1e400' is not a number"),
        (npy(tmp_path / "open.npy", "{'descr': '<i4', 'shape': ("), None, "is not a NumPy file"),
        (npy(tmp_path / "deep.npy", "(" * 9000), None, "is not a NumPy file"),
        (npy(tmp_path / "vast.npy", HEADER.format("(2147483647,)")), None, "is cut short"),
        (npy(tmp_path / "vaster.npy", HEADER.format("(2, 1 << 62)")), None, "is not a NumPy file"),
        (npy(tmp_path / "more.npy", HEADER.format("(2147483648,)")), None, "has at most 2,147,"),
        (npy(tmp_path / "less.npy", HEADER.format("(-1, -1)")), None, "has at most 2,147,"),
        (npy(tmp_path / "old.npy", HEADER.format("(4L,)")), None, "is cut short"),
        (Path("/dev/zero"), None, "is a device, not a file"),
        (tmp_path / ("a" * 300), None, "File name too long"),
    ]
    for path, dtype, message in cases:
        with pytest.raises(InputError) as error:
            arrays.numbers(path, np.dtype(dtype) if dtype else None)
        assert message in str(error.value)
        assert len(str(error.value).splitlines()) == 1
        assert len(str(error.value)) < 600


def test_numbers_on_any_number_of_lines_have_one_type(tmp_path: Path) -> None:
    """Lines are read by the thousand; the type is that of all."""
    lines = ["1"] * (arrays.LINES_AT_ONCE + 1)
    assert arrays.numbers(write(tmp_path / "whole.csv", "\n".join(lines))).dtype == np.int32
    read = arrays.numbers(write(tmp_path / "wide.csv", "\n".join([*lines, "3000000000"])))
    assert (read.dtype, read[-1], len(read)) == (np.int64, 3000000000, len(lines) + 1)
    read = arrays.numbers(write(tmp_path / "mixed.csv", "\n".join([*lines, "2.5"])))
    assert (read.dtype, read[0], read[-1]) == (np.float64, 1.0, 2.5)


def test_infinity_is_a_number_that_has_to_be_meant(tmp_path: Path) -> None:
    path = write(tmp_path / "numbers.csv", "inf -Infinity nan 3.4e38 1e-400")
    read = arrays.numbers(path, np.dtype("float32"))
    assert read.tolist()[:2] == [np.inf, -np.inf]
    assert read[3] == np.float32(3.4e38)
    assert read[4] == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int32[4]=arange", np.arange(4, dtype=np.int32)),
        ("float32[2,3]=ones", np.ones((2, 3), np.float32)),
        ("float64[2, 2]=arange", np.arange(4.0).reshape(2, 2)),
        ("uint8[3]=full:7", np.full(3, 7, np.uint8)),
        ("float32[2]=full:-0.5", np.full(2, -0.5, np.float32)),
        ("float32[2]=1", np.ones(2, np.float32)),
        ("bool[2]=true", np.ones(2, bool)),
        ("int32[2^3]=zeros", np.zeros(8, np.int32)),
    ],
)
def test_arrays_are_described_by_type_shape_and_filling(text: str, expected: np.ndarray) -> None:
    described = arguments.argument(text)
    assert described.name is None
    assert described.value.dtype == expected.dtype
    np.testing.assert_array_equal(described.value, expected)


def test_an_array_without_a_filling_has_no_elements_or_the_assumed_ones() -> None:
    assert arguments.argument("x=int32[4]").value == ArraySpec((4,), np.dtype("int32"))
    assert arguments.argument("x=int32[2]", filling="zeros").value.tolist() == [0, 0]
    assert arguments.argument("x=int32[2]=ones", filling="zeros").value.tolist() == [1, 1]


def test_random_arrays_are_the_same_every_time() -> None:
    first, second = (arguments.argument("float32[64]=random").value for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert ((first >= 0) & (first < 1)).all()
    assert arguments.argument("int32[64]=random").value.max() < 100


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("65536", 65536, int),
        ("-3", -3, int),
        ("2^16", 65536, int),
        ("0.5", 0.5, float),
        ("1e-3", 0.001, float),
        ("true", True, bool),
        ("uint32(7)", 7, np.uint32),
        ("float32(0.25)", 0.25, np.float32),
        ("int64(2^40)", 2**40, np.int64),
        ("uint64(2^64-1)", 2**64 - 1, np.uint64),
        ("float32(inf)", np.inf, np.float32),
        ("float64(1e308)", 1e308, np.float64),
    ],
)
def test_numbers_are_plain_or_of_a_named_type(text: str, value: object, kind: type) -> None:
    described = arguments.argument(text)
    assert described.value == value
    assert type(described.value) is kind


def test_arguments_may_be_named_and_come_from_files(tmp_path: Path) -> None:
    path = write(tmp_path / "numbers.csv", "1,2,3")
    assert arguments.argument("data=int32[4]=ones").name == "data"
    assert arguments.argument(f"data=@{path}").value.dtype == np.int32
    assert arguments.argument(f"float32@{path}").value.dtype == np.float32
    assert arguments.argument("n=uint32(9)").name == "n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not understood"),
        ("data", "is not understood"),
        ("int32[4]=primes", "unknown filling 'primes'"),
        ("int32[4]=zeroes", "did you mean zeros"),
        ("int23[4]", "did you mean int32"),
        ("int32[]", "one to three sizes"),
        ("int32[0]", "one to three sizes"),
        ("int32[1,2,3,4]", "one to three sizes"),
        ("int32[2^40]", "at most"),
        ("int32[4]=full:x", "is not a value of int32"),
        ("int32(0.5)", "is not a value of int32"),
        ("uint8(300)", "is not a value of uint8"),
        ("quad(3)", "unknown data type 'quad'"),
        ("2^64", "is beyond int64; give it a type, as in uint64(2^63)"),
        ("-9223372036854775809", "is beyond int64"),
        ("1e400", "is not understood"),
        ("9" * 5000, "is not understood"),
        ("float32(1e39)", "'1e39' is not a value of float32"),
        ("int32[4]=full:" + "9" * 400, "is not a value of int32"),
        ("float64(" + "9" * 400 + ")", "is not a value of float64"),
        ("int32[4294967296^64]", "at most"),
        ("x" * 100_000, "is not understood"),
        ("@nowhere.npy", "nowhere.npy: there is no such file"),
    ],
)
def test_arguments_that_cannot_be_used(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        arguments.argument(text)
    assert message in str(error.value)


def bind(*texts: str) -> list[object]:
    return arguments.bound([arguments.argument(text) for text in texts], ["a", "b", "n"], "mine")


def test_arguments_without_a_name_fill_the_places_that_are_left() -> None:
    assert bind("1", "2", "3") == [1, 2, 3]
    assert bind("n=1", "2", "3") == [2, 3, 1]
    assert bind("2", "a=1", "n=3") == [1, 2, 3]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["1"], "arguments b, n of mine missing; give them with --arg, for example --arg b="),
        (["1", "2"], "argument n of mine missing; give it"),
        (["1", "2"], "an array as --arg 'n=float32[4096]'"),
        (["1", "2", "3", "4"], "mine takes 3 arguments (a, b, n), not 4"),
        (["a=1", "a=2"], "argument a of mine is given twice"),
        (["m=1"], "mine has no argument 'm'"),
    ],
)
def test_arguments_that_do_not_match_the_parameters(texts: list[str], message: str) -> None:
    with pytest.raises(InputError) as error:
        bind(*texts)
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["mine.py:f", "./mine.py:f", "mine.py", "a/b:f"])
def test_a_kernel_with_a_path_is_one_of_the_users_own(text: str) -> None:
    assert Reference.of(text).file
    assert not Reference.of("reduce2").file


def kernel_of(text: str) -> Kernel | MachineCode:
    """Return the kernel of a name."""
    return Reference.of(text).made(Namespace())


def test_a_kernel_comes_out_of_its_file(kernel_file: Path) -> None:
    kernel = kernel_of(f"{kernel_file}:double")
    assert kernel.source.parameters == ["data", "n"]
    assert kernel_of(str(kernel_file)).__name__ == "double"


def test_a_kernel_file_may_import_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path / "sizes_beside_it.py", "BLOCK = 64")
    path = write(tmp_path / "user.py", "from sizes_beside_it import BLOCK\n" + KERNELS)
    assert kernel_of(f"{path}:double").__name__ == "double"


def test_files_that_have_no_such_kernel(tmp_path: Path, kernel_file: Path) -> None:
    cases = [
        ("nowhere.py:f", "nowhere.py: there is no such file"),
        (f"{kernel_file}:doubel", "did you mean double?"),
        (f"{kernel_file}:plain", "is a plain function, no kernel; decorate it with @cuda.jit"),
        (f"{kernel_file}:twice", "is a device function"),
        (f"{kernel_file}:LIMIT", "is a int, no kernel"),
        (str(write(tmp_path / "none.py", "x = 1")), "has 0 kernels"),
        (f"{write(tmp_path / 'notes.txt', 'x')}:f", "is not a Python file"),
        (f"{write(tmp_path / 'syntax.py', 'x = 1' + chr(10) + 'def f(:')}:f", "line 2 does not"),
        (f"{write(tmp_path / 'name.py', chr(10) + 'unknown_name')}:f", "line 2 does not import"),
        (f"{write(tmp_path / 'lost.py', 'import not_there_at_all')}:f", "ModuleNotFoundError"),
        (
            f"{write(tmp_path / 'exits.py', 'raise SystemExit(3)')}:f",
            "line 1 does not import: SystemExit",
        ),
    ]
    for text, message in cases:
        with pytest.raises(InputError) as error:
            kernel_of(text)
        assert message in str(error.value)
        assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("SystemExit(3)", "line 3 does not import: SystemExit: 3"),
        ("KeyboardInterrupt", "line 3 does not import: KeyboardInterrupt"),
        ("GeneratorExit('x')", "line 3 does not import: GeneratorExit: x"),
        ("Speechless", "line 3 does not import: Speechless"),
    ],
)
def test_whatever_a_file_raises_is_said_with_its_line(
    tmp_path: Path, raised: str, said: str
) -> None:
    lines = "class Speechless(BaseException):\n    __str__ = None\n"
    path = write(tmp_path / "raises.py", f"{lines}raise {raised}")
    with pytest.raises(InputError) as error:
        kernel_of(f"{path}:f")
    assert said in str(error.value)


def test_what_a_file_does_to_python_is_undone(tmp_path: Path) -> None:
    path = write(tmp_path / "meddles.py", f"import sys{chr(10)}{KERNELS}{chr(10)}sys.path = None")
    before = list(sys.path), sys.getrecursionlimit()
    assert kernel_of(f"{path}:double").__name__ == "double"
    assert (sys.path, sys.getrecursionlimit()) == before


def test_an_interrupt_of_the_users_is_none_of_the_files(tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has none
    text = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass\n"
    with pytest.raises(KeyboardInterrupt):
        kernel_of(f"{write(tmp_path / 'endless.py', text)}:f")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_the_dialect_lacks_is_said_of_the_users_line(tmp_path: Path) -> None:
    text = "from gpusim import cuda\n\n@cuda.jit\ndef f(a):\n    with a:\n        pass\n"
    path = write(tmp_path / "lacks.py", text)
    with pytest.raises(KernelSourceError) as error:
        kernel_of(f"{path}:f")
    assert "lacks.py:5" in str(error.value)
    assert "^" in str(error.value)
