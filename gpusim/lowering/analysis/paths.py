"""Paths between blocks: the ones that some lead to, and the ones that lead to some."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from gpusim.compiler.ir import Block
from gpusim.program import dataflow

_targets, _preds = attrgetter("targets"), attrgetter("preds")


def reachable(starts: Iterable[Block], without: Block | None = None) -> set[Block]:
    """Return `starts` and the blocks that they lead to, on paths `without` one."""
    return dataflow.reachable(starts, _targets, (without,))


def leading_to(ends: Iterable[Block], without: Block | None = None) -> set[Block]:
    """Return `ends` and the blocks that lead to them, on paths `without` one."""
    return dataflow.reachable(ends, _preds, (without,))
