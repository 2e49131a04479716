"""The launches of `gpusim check --explore`: runs them, and looks for the smallest that fails."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpusim.checking.explored import Explored, Tried, alike
from gpusim.cli.exploration import Axis, catalogue_axes, own_axes, variants
from gpusim.cli.launch_examples import command_line
from gpusim.cli.launches import CatalogueLaunch, grid_of, resolved, sizes_given
from gpusim.cli.options import Option
from gpusim.cli.progress import Bar
from gpusim.errors import GpusimError

if TYPE_CHECKING:
    from gpusim.checking.findings import Findings
    from gpusim.cuda import Kernel
    from gpusim.launch.configured import MachineCode

MOST_KNOWN = 100  # variants in succession that have been tried: there are no others
NOT_OF_THE_LAUNCH = ("explore", "seed", "json", "sarif", "format", "out")

Check = Callable[[Namespace, "Kernel | MachineCode | None"], "Findings"]


class _Launches:
    """The launches that have been tried, by command line."""

    def __init__(
        self, kernel: Kernel | MachineCode | None, check: Check, options: Sequence[Option], bar: Bar
    ) -> None:
        self._kernel, self._check, self._options, self._bar = kernel, check, options, bar
        self.tried: dict[str, Tried] = {}
        self._chosen: dict[str, Namespace] = {}

    def first(self, chosen: Namespace) -> None:
        """Check the given launch; GpusimError where it cannot run."""
        self._add(chosen, Tried(self._command(chosen), self._check(chosen, self._kernel)))

    def other(self, chosen: Namespace) -> bool:
        """Check another launch, or find out that it cannot run; False for one that is known."""
        command = self._command(chosen)
        if command in self.tried:
            return False
        try:
            one = Tried(command, self._check(chosen, self._kernel))
        except GpusimError as error:
            one = Tried(command, refused=str(error).partition("\n")[0])
        self._add(chosen, one)
        return True

    def shrink(self, sizes: Axis, seed: int) -> None:
        """Try the launches that fail with smaller sizes as well, the smallest first."""
        for one in Explored(seed, list(self.tried.values())).smallest:
            wanted = set(map(alike, one.findings or ()))
            smaller = [change(self._chosen[one.command]) for change in sizes.changes]
            for chosen in sorted(smaller, key=_size):
                if _size(chosen) >= one.size:
                    break
                self.other(chosen)
                found = self.tried[self._command(chosen)].findings
                if found is not None and wanted & set(map(alike, found)):
                    break

    def _add(self, chosen: Namespace, one: Tried) -> None:
        size = _size(chosen) if one.findings is None else _size(chosen, one.findings)
        self.tried[one.command] = Tried(one.command, one.findings, size, one.refused)
        self._chosen[one.command] = chosen
        self._bar.advance()

    def _command(self, chosen: Namespace) -> str:
        """Return the command line of one launch."""
        words: list[str] = []
        for option in self._options:
            name = option.destination or option.flag.strip("-").replace("-", "_")
            value = getattr(chosen, name, None)
            if name in NOT_OF_THE_LAUNCH or value in (None, False, option.default):
                continue
            if option.flag.startswith("-"):
                for text in value if isinstance(value, list) else [value]:
                    words += [option.flag] if text is True else [option.flag, str(text)]
        return command_line("check", chosen.kernel, words)


def explored(
    chosen: Namespace, count: int, seed: int, check: Check, options: Sequence[Option]
) -> Explored:
    """Return the findings of the launch that options describe, and of `count` others.

    Some more, with smaller sizes, are run where a launch fails.
    """
    chosen, kernel, axes = _described(chosen)
    with Bar(count + 1, "launches") as bar:
        bar.start()
        launches = _Launches(kernel, check, options, bar)
        launches.first(chosen)
        made, known = 0, 0
        for other in variants(chosen, axes, seed):
            if made == count or known > MOST_KNOWN:
                break
            is_new = launches.other(other)
            made, known = made + is_new, 0 if is_new else known + 1
        launches.shrink(axes[0], seed)
    return Explored(seed, list(launches.tried.values()))


def _described(chosen: Namespace) -> tuple[Namespace, Kernel | MachineCode | None, list[Axis]]:
    """Return the options of the whole launch, the kernel of a file, and what may vary of it."""
    launch = resolved(chosen)
    if isinstance(launch, CatalogueLaunch):
        setup = launch.selection.request.setup()
        return chosen, None, catalogue_axes(setup.entry, setup.block, setup.n)
    from gpusim.checking.check import to_check
    from gpusim.cli.options import DEFAULT_DEVICE
    from gpusim.cli.timing import device_of

    kernel, chosen = launch.kernel, launch.explicit
    configured, values = launch.filled()
    cc = device_of(chosen.device or DEFAULT_DEVICE, None).cc
    program = to_check(configured, values, cc, chosen.code).program
    return chosen, kernel, own_axes(chosen, program, kernel.source.parameters)


def _size(chosen: Namespace, findings: Findings | None = None) -> int:
    """Return the number of elements that options give a launch, and of its threads."""
    from gpusim.cli.arguments import argument
    from gpusim.launch.arguments import ArraySpec

    try:
        names = sizes_given(chosen)
        size = names.get("n", 0)
        for text in chosen.arg or ():
            value = argument(text, names=names).value
            if isinstance(value, ArraySpec):
                size += math.prod(value.shape)
        if findings is not None:
            return size + math.prod(findings.grid) * math.prod(findings.block)
        grid = grid_of(chosen.grid, names) if chosen.grid else ()
    except GpusimError:
        return size
    return size + math.prod(grid) * names.get("block", 1)
