"""Symbols of the dialect that only the compiler gives meaning: intrinsics, special registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from gpusim.errors import GpusimError


@dataclass(frozen=True)
class Intrinsic:
    """A function of the dialect; only the compiler gives it meaning."""

    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: intrinsics mean something only inside a kernel."""
        raise GpusimError(f"cuda.{self.name} can only be used inside a kernel")


@dataclass(frozen=True)
class SpecialRegister:
    """A value that the hardware gives each thread, of type int32."""

    name: str


@dataclass(frozen=True)
class SpecialRegister3:
    """A special register with three directions."""

    x: SpecialRegister
    y: SpecialRegister
    z: SpecialRegister
