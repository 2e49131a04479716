"""NVRTC in a process of its own: options of one compilation cannot reach the next one.

Run as a script, without the package: reads a request as JSON, writes the answer as JSON.
"""

import base64
import ctypes
import importlib
import json
import sys
from pathlib import Path
from typing import Any


def loaded(path: str) -> ctypes.CDLL:
    """Return the compiler's library, with its second half loaded before it."""
    for half in second_halves(Path(path).parent):
        ctypes.CDLL(str(half))
    return ctypes.CDLL(path)


def second_halves(folder: Path) -> list[Path]:
    """Return the libraries of built-in functions beside the compiler; a toolkit has an archive."""
    found = sorted(folder.glob("*nvrtc-builtins*"))
    return [one for one in found if "alt" not in one.name and one.suffix not in (".a", ".lib")]


class Failure(Exception):
    """The compiler's message about source that does not compile."""


class Compilation:
    """One compilation."""

    def __init__(self, library: ctypes.CDLL, request: dict[str, Any]) -> None:
        self.nvrtc, self.request = library, request
        self.program = ctypes.c_void_p()

    def run(self) -> dict[str, Any]:
        """Return machine code as base64, and the name in it of each name expression."""
        text = self.request["text"].encode(errors="surrogateescape")
        file = self.request["file"].encode(errors="surrogateescape")
        made = ctypes.byref(self.program)
        held = self.request["headers"]
        texts = ctypes.c_char_p * len(held)
        contents = texts(*(content.encode(errors="surrogateescape") for content in held.values()))
        headers = len(held), contents, texts(*(name.encode() for name in held))
        self.check(self.nvrtc.nvrtcCreateProgram(made, text, file, *headers))
        for expression in self.request["expressions"]:
            self.check(self.nvrtc.nvrtcAddNameExpression(self.program, expression.encode()))
        options = [option.encode() for option in self.request["options"]]
        given = (ctypes.c_char_p * len(options))(*options)
        if self.nvrtc.nvrtcCompileProgram(self.program, len(options), given):
            raise Failure(
                self.text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog").decode(errors="replace")
            )
        cubin = self.text("nvrtcGetCUBINSize", "nvrtcGetCUBIN", cut=False)
        names = {e: self.lowered(e) for e in self.request["expressions"]}
        return {
            "cubin": base64.b64encode(cubin).decode(),
            "ptx": self.text("nvrtcGetPTXSize", "nvrtcGetPTX").decode(errors="replace"),
            "names": names,
            "version": self.version(),
        }

    def lowered(self, expression: str) -> str:
        """Return the mangled name of the entity that an expression names."""
        name = ctypes.c_char_p()
        self.check(
            self.nvrtc.nvrtcGetLoweredName(self.program, expression.encode(), ctypes.byref(name))
        )
        return (name.value or b"").decode()

    def text(self, size_of: str, get: str, *, cut: bool = True) -> bytes:
        """Return bytes that the library gives in two calls."""
        size = ctypes.c_size_t()
        self.check(getattr(self.nvrtc, size_of)(self.program, ctypes.byref(size)))
        held = ctypes.create_string_buffer(max(1, size.value))
        self.check(getattr(self.nvrtc, get)(self.program, held))
        return held.value if cut else held.raw[: size.value]

    def version(self) -> str:
        """Return the compiler's version, such as 13.5."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.check(self.nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        return f"{major.value}.{minor.value}"

    def check(self, code: int) -> None:
        """Raise Failure where a call of the library failed."""
        if code:
            describe = self.nvrtc.nvrtcGetErrorString
            describe.restype = ctypes.c_char_p
            raise Failure(f"NVRTC: {describe(code).decode()}")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return machine code or the compiler's words, and "lookups": its files with their states.

    It has no lookups where they cannot be seen.
    """
    lookups: Any = None
    try:
        library = loaded(request["library"])
        seeing = importlib.import_module("lookups").Lookups
        lookups = seeing(library, request["stamped"], request["replaced"])
        made = Compilation(library, request).run()
    except (Failure, OSError) as error:
        made = {"error": str(error)}
    are_seen = lookups is not None and lookups.are_seen
    seen = [[*asked, state] for asked, state in lookups.found.items()] if are_seen else None
    return {**made, "lookups": seen}


def main() -> None:
    """Compile the request on standard input."""
    sys.path.append(str(Path(__file__).parent))
    importlib.import_module("bounded").end_with_parent()
    json.dump(answer(json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
