"""Files that a user names: whatever a path leads to, an answer or a sentence."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from gpusim.errors import InputError
from gpusim.host import files


class OtherError(InputError):
    """What a reader of its own kind of file raises."""


def complaint(path: Path) -> str:
    """Return what is said of a file that cannot be used as JSON."""
    with pytest.raises(OtherError) as refused:
        files.parsed_json(path, OtherError)
    message = str(refused.value)
    assert "\n" not in message
    return message


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "file"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/nowhere/file", "/nowhere/file: there is no such file"),
        ("/", "/: is a directory, not a file"),
        ("/dev/full", "/dev/full: is a device, not a file"),
        ("/dev/zero", "/dev/zero: is a device, not a file"),
        ("/proc/self/mem", "/proc/self/mem: cannot be read: Input/output error"),
        ("nul\0l", "nul?l: cannot be read: embedded null byte"),
    ],
)
def test_what_is_no_file_is_named(path: str, said: str) -> None:
    """A directory; devices that never end; a file that cannot be read; a name that is none."""
    assert complaint(Path(path)) == said


def test_a_name_that_is_too_long_is_repeated_in_part() -> None:
    said = complaint(Path("/tmp/" + "a" * 5000))
    assert said.endswith("aaa: cannot be read: File name too long")
    assert len(said) < 300


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "is not a text file in UTF-8"),
        (b"{", "line 1, column 2: is not JSON: "),
        (b"[" * 5000, "is nested deeper than 16 levels"),
        (b"[" * 17 + b"]" * 17, "is nested deeper than 16 levels"),
        (b"9" * 5000, "holds a number of thousands of digits"),
        (b"[18446744073709551616]", "holds a number of more than 64 bits"),
        (b'{"a": 1, "a": 2}', "holds the key 'a' twice"),
    ],
)
def test_json_is_read_within_bounds(tmp_path: Path, content: bytes, said: str) -> None:
    path = written(tmp_path, content)
    assert complaint(path).startswith(f"{path}: {said}")


def test_what_lies_within_the_bounds_is_read(tmp_path: Path) -> None:
    assert files.parsed_json(written(tmp_path, b"[" * 16 + b"]" * 16))
    assert files.parsed_json(written(tmp_path, b"\xef\xbb\xbf[18446744073709551615]")) == [
        2**64 - 1
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a = " + "[" * 5000, "is nested deeper than 16 levels"),
        (".".join("a" * 5000) + " = 1", "is nested deeper than 16 levels"),
        ("a = " + "9" * 5000, "holds a number of thousands of digits"),
        ("a = 0x" + "f" * 5000, "holds a number of more than 64 bits"),
        ("a", "is not TOML: "),
    ],
)
def test_toml_is_read_within_bounds(tmp_path: Path, content: str, said: str) -> None:
    path = written(tmp_path, content.encode())
    with pytest.raises(InputError) as refused:
        files.toml(path)
    assert str(refused.value).startswith(f"{path}: {said}")


def test_a_file_is_read_up_to_a_length(tmp_path: Path) -> None:
    path = written(tmp_path, b"12345")
    assert files.text(path, 5) == "12345"
    with pytest.raises(InputError, match="is longer than 4 bytes"):
        files.text(path, 4)


def test_a_pipe_is_read_as_a_file_is(tmp_path: Path) -> None:
    """`gpusim validate compare --against /dev/stdin` and `<(...)` of a shell."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("[1]",))
    writer.start()
    assert files.parsed_json(pipe) == [1]
    writer.join()


def test_a_file_that_cannot_be_written_whole_keeps_what_it_had(tmp_path: Path) -> None:
    path = written(tmp_path, b"before")
    with pytest.raises(InputError, match=r"cannot be written: .*surrogates not allowed"):
        files.write_whole(path, "after \udcff")
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_device_that_takes_nothing_is_a_sentence() -> None:
    with pytest.raises(InputError, match="/dev/full: cannot be written: No space left on device"):
        files.write_whole(Path("/dev/full"), "text")


def test_a_link_goes_on_leading_where_it_leads(tmp_path: Path) -> None:
    path = written(tmp_path, b"before")
    link = tmp_path / "link"
    link.symlink_to(path)
    files.write_whole(link, "after")
    assert link.is_symlink()
    assert path.read_text() == "after"


def test_a_pipe_whose_writer_takes_its_time_is_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write_slowly() -> None:
        with pipe.open("w") as file:
            time.sleep(0.4)
            file.write("[2]")

    writer = threading.Thread(target=write_slowly)
    writer.start()
    with files.opened(pipe, writer_s=0.1) as file:
        assert file.read() == b"[2]"
    writer.join()


def test_a_pipe_into_which_nobody_writes_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        pytest.raises(OtherError, match=f"^{pipe}: is a pipe without a writer$"),
        files.opened(pipe, OtherError, writer_s=0.1),
    ):
        pass


def test_what_is_read_again_is_no_pipe(tmp_path: Path) -> None:
    """The Python file of a kernel is read by others, by its name."""
    pipe = tmp_path / "kernels.py"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="is a pipe, not a file"):
        files.text(pipe, 10, again=True)
