"""A request for a kernel of the catalogue, not yet checked against the kernel's rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpusim.catalogue.registry import REDUCTION, Entry, Setup, find
from gpusim.errors import InputError, LaunchError
from gpusim.typing import Array, DType

PASSES = ("one", "all")


@dataclass(frozen=True)
class Request:
    """A kernel by name, with its size and its options; None where the kernel's own rule decides.

    `passes` is "one" for one launch, "all" for launches until one value is left. `grid` is that
    of the first.
    """

    kernel: str
    n: int | None = None
    block: int | None = None
    operation: str = "sum"
    dtype: DType | str | None = None
    grid: int | None = None
    coarse: int | None = None
    passes: str = "one"
    cluster: int | None = None

    @classmethod
    def of(cls, setup: Setup) -> Request:
        """Return the request for a launch alone."""
        entry = setup.entry
        return cls(
            entry.name,
            setup.n,
            setup.block,
            setup.operation,
            setup.dtype,
            setup.grid if entry.grid_free else None,
            setup.coarse if entry.default_coarse else None,
            cluster=setup.cluster if entry.default_cluster else None,
        )

    @property
    def entry(self) -> Entry:
        """The kernel; InputError where there is none of this name."""
        return find(self.kernel)

    def for_data(self, data: Array) -> Request:
        """Return the same request for this many numbers of this type."""
        return replace(self, n=data.size, dtype=data.dtype)

    def sized(self, n: int | None, block: int | str | None) -> Request:
        """Return the same request for another size and block; None leaves them as they are.

        LaunchError for a block of more axes.
        """
        if isinstance(block, str):
            raise LaunchError(f"a block of {self.kernel} has one dimension, not {block}")
        return replace(
            self, n=self.n if n is None else n, block=self.block if block is None else block
        )

    def with_values(self, values: Mapping[str, int | str]) -> Request:
        """Return the same request with another block, grid, coarse factor or cluster.

        InputError for parameters that the kernel does not have, LaunchError for a block with more
        than one dimension.
        """
        made = self
        for name, value in values.items():
            if name == "block":
                made = made.sized(self.n, value)
            elif name in ("grid", "coarse", "cluster") and isinstance(value, int):
                members: dict[str, Any] = {name: value}
                made = replace(made, **members)
            else:
                raise InputError(
                    f"{self.kernel} has no parameter {name}={value}; a kernel of the catalogue has "
                    "a block, and some a grid, a coarse factor or a cluster"
                )
        return made

    def setup(self) -> Setup:
        """Return the first launch; InputError or LaunchError where the kernel cannot do it."""
        return self.entry.setup(
            self.n,
            block=self.block,
            operation=self.operation,
            dtype=self.dtype,
            grid=self.grid,
            coarse=self.coarse,
            cluster=self.cluster,
        )

    def setups(self) -> list[Setup]:
        """Return all launches that are requested; InputError or LaunchError as for the first.

        A kernel with a fixed grid finishes in one block; any other is launched by its rule
        until one block is enough.
        """
        if self.passes not in PASSES:
            raise InputError(f"passes are {' or '.join(PASSES)}, not {self.passes!r}")
        entry = self.entry
        if self.passes == "one":
            return [self.setup()]
        if entry.family is not REDUCTION:
            raise InputError(
                f"{entry.name} is a {entry.family.name}; it leaves more than one value"
            )
        made = [self.setup()]
        following = replace(self, grid=1 if entry.default_grid else None)
        while made[-1].results > 1:
            made.append(replace(following, n=made[-1].results).setup())
        return made
