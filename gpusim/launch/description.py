"""A launch described as text: kernel, size, grid, block, arguments, data, device.

Each member has its origin: an option, the comment in the file, the kernel's own rule, host code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar


class Origin(StrEnum):
    """Where a member of a launch comes from, the first of these that has it."""

    TYPED = "option"
    PROJECT = "pyproject.toml"
    COMMENT = "comment in the file"
    RULE = "the kernel's rule"
    HOST = "host code"
    DEFAULT = "default"


@dataclass(frozen=True)
class Member:
    """A value as it is written on a command line, and its origin; with a line of the file."""

    value: str
    origin: Origin
    line: int | None = None

    @property
    def source(self) -> str:
        """The origin, with its line: `host code, line 27`."""
        return self.origin if self.line is None else f"{self.origin}, line {self.line}"

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        made: dict[str, Any] = {"value": self.value, "origin": str(self.origin)}
        return made if self.line is None else {**made, "line": self.line}


@dataclass(frozen=True)
class LaunchDescription:
    """The members of a launch; None for absent ones.

    `data` are the assumed fillings of arrays, by parameter.
    """

    kernel: str
    n: Member | None = None
    grid: Member | None = None
    block: Member | None = None
    shared_bytes: Member | None = None
    cluster: Member | None = None
    arguments: Mapping[str, Member] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    device: Member | None = None

    def with_data(self, data: Mapping[str, str]) -> LaunchDescription:
        """Return the same launch with the fillings that were assumed."""
        return replace(self, data=dict(data))

    def with_origins_of(self, other: LaunchDescription) -> LaunchDescription:
        """Return the same launch; members equal to another's take their origins from it."""
        arguments = {
            name: _same_or(one, other.arguments.get(name)) for name, one in self.arguments.items()
        }
        return replace(
            self,
            n=_same_or(self.n, other.n),
            grid=_same_or(self.grid, other.grid),
            block=_same_or(self.block, other.block),
            shared_bytes=_same_or(self.shared_bytes, other.shared_bytes),
            cluster=_same_or(self.cluster, other.cluster),
            arguments=arguments,
            device=self.device or other.device,
        )

    @property
    def origin(self) -> str:
        """Where the members that are not typed come from: `block, grid: host code, line 27`."""
        members = {"n": self.n, "block": self.block, "grid": self.grid}
        parts: dict[str, list[str]] = {}
        for name, one in members.items():
            if one is not None and one.origin not in (Origin.TYPED, Origin.RULE):
                parts.setdefault(one.source, []).append(name)
        sources = {one.source for one in self.arguments.values()}
        arguments = self.arguments.items() if len(sources) > 1 else [*self.arguments.items()][:1]
        for name, one in arguments:
            if one.origin is not Origin.TYPED:
                said = name if len(sources) > 1 else "arguments"
                parts.setdefault(one.source, []).append(said)
        return "; ".join(f"{', '.join(names)}: {source}" for source, names in parts.items())

    @property
    def assumptions(self) -> str:
        """The data that was assumed: `x, y seeded random numbers; out zeros`; "" for none."""
        by_filling: dict[str, list[str]] = {}
        for name, filling in self.data.items():
            by_filling.setdefault(_in_words(filling), []).append(name)
        return "; ".join(f"{', '.join(names)} {what}" for what, names in by_filling.items())

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        members = {
            name: None if one is None else one.to_dict()
            for name in ("n", "grid", "block", "shared_bytes", "cluster", "device")
            if (one := getattr(self, name)) is not None or name not in ("shared_bytes", "cluster")
        }
        given = {name: one.to_dict() for name, one in self.arguments.items()}
        return {"kernel": self.kernel, **members, "arguments": given, "data": dict(self.data)}


M = TypeVar("M", Member, Member | None)


def _same_or(one: M, other: Member | None) -> M:
    """Return `other` if it has the value of `one`, else `one`."""
    return other if one is not None and other is not None and one.value == other.value else one


def _in_words(filling: str) -> str:
    """Return a filling of `--arg` in words, without its seed."""
    kind, _, rest = filling.partition(":")
    if kind != "random":
        return filling
    _, _, ends = rest.partition(":")
    least, _, most = ends.partition(":")
    return f"random whole numbers from {least} to {most}" if ends else "random numbers"


def described(description: LaunchDescription | None) -> dict[str, Any]:
    """Return a launch's member of a JSON document, {} without a description."""
    return {} if description is None else {"launch": description.to_dict()}
