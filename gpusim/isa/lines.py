"""Lines of the source, with the calls by which code of device functions was inlined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A call of a device function: its name, "" where it is not known, and the line of the call."""

    function: str
    line: int

    def to_dict(self) -> dict[str, Any]:
        """Return the call, ready for JSON."""
        return {"function": self.function, "line": int(self.line)}


class SourceLine(int):
    """The number of a line, which belongs to the innermost of `calls`; the kernel has the last."""

    calls: tuple[Call, ...]

    def __new__(cls, line: int, calls: Sequence[Call] = ()) -> SourceLine:
        """Return a line, reached by some calls."""
        made = super().__new__(cls, line)
        made.calls = tuple(calls)
        return made


def calls_of(line: int) -> tuple[Call, ...]:
    """Return the calls by which a line was reached; none for a line of the kernel itself."""
    return line.calls if isinstance(line, SourceLine) else ()


def call_path(calls: Sequence[Call]) -> str:
    """Return calls in words: "block_sum, called from line 18"; "" for none."""
    parts = [f"called from line {call.line}" for call in calls]
    for number, call in enumerate(calls[1:]):
        parts[number] += f" in {call.function}" if call.function else ""
    if calls and calls[0].function:
        parts.insert(0, calls[0].function)
    return ", ".join(parts)


def in_words(line: int) -> str:
    """Return a line with its calls: "line 7 (block_sum, called from line 18)"."""
    path = call_path(calls_of(line))
    return f"line {line} ({path})" if path else f"line {line}"


def callers(paths: Iterable[Sequence[Call]]) -> str:
    """Return the callers of a line's function: "block_sum, called from lines 18, 20"."""
    inner = [path[0] for path in paths if path]
    names = [name for name in dict.fromkeys(call.function for call in inner) if name]
    lines = sorted({call.line for call in inner})
    if not lines:
        return ""
    from_lines = f"called from line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
    return ", ".join([*names, from_lines])
