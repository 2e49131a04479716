"""Records of a trace: plain data, from the launch down to one access."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.isa.lines import Call, callers
from gpusim.launch.description import LaunchDescription, described
from gpusim.launch.grid import Launch
from gpusim.launch.prepared import Prepared
from gpusim.launch.views import Shown, View
from gpusim.tracing.counters import COUNTERS
from gpusim.tracing.counting import Counters
from gpusim.tracing.execution import Execution
from gpusim.tracing.footprint import Footprint
from gpusim.tracing.iterations import iterations
from gpusim.tracing.repeat import Repeat
from gpusim.tracing.source_decisions import source_decisions
from gpusim.typing import Array


@dataclass(frozen=True)
class CallPath:
    """One path of calls to a line of a device function, innermost first, and its counters."""

    calls: tuple[Call, ...]
    executions: int
    counters: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the path, ready for JSON."""
        calls = [call.to_dict() for call in self.calls]
        return {"calls": calls, "executions": self.executions, "counters": self.counters}


@dataclass(frozen=True)
class LineCounters:
    """One source line: how often warps ran it, with how many lanes, and every counter.

    `executions` counts warps running the line, `active_lanes` is the mean number of lanes
    that did (0 to 32). A line of a device function is `called_from` some paths of calls.
    """

    line: int
    text: str
    executions: int
    active_lanes: float
    counters: dict[str, int]
    called_from: tuple[CallPath, ...] = ()

    @property
    def callers(self) -> str:
        """The line's function and the lines of its calls, in words; "" for one of the kernel."""
        return callers(path.calls for path in self.called_from)

    def to_dict(self) -> dict[str, Any]:
        """Return the line, ready for JSON."""
        paths = [path.to_dict() for path in self.called_from]
        return {
            "line": self.line,
            "text": self.text,
            "executions": self.executions,
            "active_lanes": self.active_lanes,
            "counters": self.counters,
            **({"called_from": paths} if paths else {}),
        }


@dataclass(frozen=True)
class WarpCounters:
    """Every counter of one warp of one block."""

    block: int
    warp: int
    counters: dict[str, int]


class Blocks(Sequence[dict[str, int]]):
    """Every counter of every block: `blocks[i]["barriers"]`. Equal blocks share their numbers."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def __len__(self) -> int:
        return len(self._counters.table_of_block)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        table = self._counters.tables[self._counters.table_of_block[index]]
        return self._counters.named(table.sum(axis=0))

    def by_pc(self, counter: str) -> Array:
        """Return a counter's sums over the launch by instruction."""
        names = [spec.name for spec in self._counters.specs]
        return np.asarray(self._counters.by_pc[:, names.index(counter)])

    def warps(self, index: int) -> list[dict[str, int]]:
        """Return every counter of each warp of a block."""
        table = self._counters.tables[self._counters.table_of_block[index]]
        return [self._counters.named(row) for row in table]


@dataclass(frozen=True)
class Trace(Shown, shown_as="trace"):
    """The counters of one launch. `counters` are plain ints over all blocks.

    `blocks[i]` has the counters of block i; `warps` and `executions` belong to block
    `block_index`, `is_complete` is False if it had too many executions to keep them all.
    `compiler` names the compiler of the executed code, empty for the lowering; `generator` is the
    code generator with its version, and `fallback` the reason for not using nvcc's compiler, if
    it was requested.
    `arrays` are the types of the array arguments by name. `footprints` are the bytes of them that
    each line accesses. `printed` is the output of printf, in the order of execution.
    `plot_...(theme="dark")` return Matplotlib figures of that block, `to_dataframe()` the lines as
    a pandas DataFrame. `show()` is the page of `gpusim report` in a notebook; it runs the launch
    again, as `repeat` keeps it. `description` is the origin of the launch's members.
    """

    kernel: str
    launch: Launch
    lowering: str
    cc: str
    counters: dict[str, int]
    lines: list[LineCounters]
    blocks: Blocks
    warps: list[WarpCounters]
    executions: Sequence[Execution]
    block_index: int
    source_file: str
    is_complete: bool = True
    compiler: str = ""
    generator: str = ""
    fallback: str = ""
    arrays: dict[str, str] = field(default_factory=dict)
    footprints: list[Footprint] = field(default_factory=list)
    prepared: Prepared | None = field(default=None, repr=False, compare=False)
    source: Callable[[], Prepared] | None = field(default=None, repr=False, compare=False)
    repeat: Repeat | None = field(default=None, repr=False, compare=False)
    traced_blocks: int = 1
    printed: bytes = b""
    description: LaunchDescription | None = field(default=None, repr=False, compare=False)

    plot_tree = View("gpusim.reports.plots.tree", "plot_tree")
    plot_divergence = View("gpusim.reports.plots.divergence", "plot_divergence")
    plot_banks = View("gpusim.reports.plots.banks", "plot_banks")
    plot_strides = View("gpusim.reports.plots.strides", "plot_strides")
    show = View("gpusim.reports.notebook.page", "show")

    def __repr__(self) -> str:
        grid, block = ("x".join(map(str, sizes)) for sizes in (self.launch.grid, self.launch.block))
        return f"<Trace of {self.kernel}, grid {grid}, block {block}>"

    @cached_property
    def findings(self) -> list[Any]:
        """Advice on the launch, the costliest first; one of kind "none" if all is well."""
        found: list[Any] = View("gpusim.advice.findings", "find").load()(self)
        return found

    @cached_property
    def iterations(self) -> list[int]:
        """The iteration of each execution, from 0, of its line in its warp."""
        return iterations(self.executions)

    @cached_property
    def source_executions(self) -> list[Execution]:
        """Conditions of the source that the block's warps decide, where a compiler's code ran."""
        if self.source is None:
            return []
        return [
            Execution(
                pc=entry.pc,
                line=entry.instruction.line,
                op=entry.instruction.op,
                warp=entry.warp,
                occurrence=entry.occurrence,
                active=tuple(entry.active.tolist()),
                on=tuple(entry.on.tolist()),
                taken=None if entry.taken is None else tuple(entry.taken.tolist()),
            )
            for entry in source_decisions(self.source, self.block_index)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the document of `gpusim trace --json`: numbers, strings, lists, dictionaries."""
        return {
            "kernel": self.kernel,
            "grid": list(self.launch.grid),
            "block": list(self.launch.block),
            "dynamic_shared_bytes": self.launch.dynamic_shared_bytes,
            **described(self.description),
            "lowering": self.lowering,
            "generator": self.generator,
            "fallback": self.fallback or None,
            "cc": self.cc,
            "block_index": self.block_index,
            "counters": {
                name: {
                    "value": value,
                    "unit": COUNTERS[name].unit,
                    "kind": COUNTERS[name].kind_with(self.compiler),
                    "ncu": COUNTERS[name].ncu,
                }
                for name, value in self.counters.items()
            },
            "lines": [line.to_dict() for line in self.lines],
            "footprints": [footprint.to_dict() for footprint in self.footprints],
            "warps": [
                {"block": warp.block, "warp": warp.warp, "counters": warp.counters}
                for warp in self.warps
            ],
            "findings": [finding.to_dict() for finding in self.findings],
        }
