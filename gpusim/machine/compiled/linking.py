"""The module that all programs share, and the module of a program beside it.

The shared one has the memory and the functions that need no program, three quarters of all code: it
is compiled once. A program's module imports these, and gives it `start` and `warp` in a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from gpusim.machine.compiled import layout
from gpusim.wasm.linked import PAGE

NAME = "gpusim"  # of the imported functions
LEAST_PAGES = 2
HOST = """(func $host (param i32 i32 i32 i32))
(func $drain)
(func $take_steps)
(func $bring (param i32 i32))
(func $progress (param i32) (result i32))
(func $draw (param i32 i32) (result i32))"""
_TABLE = "(table 2 2 funcref)"
_GIVEN = """(func $start (param i32) (call_indirect (param i32) (local.get 0) (i32.const 0)))
(func $warp (param i32 i32)
  (call_indirect (param i32 i32) (local.get 0) (local.get 1) (i32.const 1)))"""
_HEADER = re.compile(r"\(func (\$[\w.]+)((?:\s*\((?:param|result)[^)]*\))*)")
_CALLED = re.compile(r"\(call (\$[\w.]+)")


class Shared(NamedTuple):
    """A variant of the shared module: that records steps, that finds races, with turns in order.

    With `checking` it writes down the steps of a check; `by_clock` the warp with the smallest clock
    runs next.
    """

    recording: bool
    detecting: bool
    checking: bool
    in_order: bool
    by_clock: bool = False


PLAIN = Shared(recording=False, detecting=False, checking=False, in_order=False)


@cache
def shared_text(variant: Shared) -> str:
    """Return the shared module."""
    code = layout.runtime(**variant._asdict())
    exported = " ".join(
        f'(export "{name[1:]}" (func {name}))' for name in _headers(code) if "." not in name
    )
    return f"""(module
{_imported(_headers(HOST))}
(memory (export "memory") {LEAST_PAGES})
(table (export "table") 2 2 funcref)
{_GIVEN}
{code}
{exported})"""


def text(code: str, data: str, end: int, variant: Shared) -> str:
    """Return the module of a program from its functions, with its `data` below an address."""
    there = {**_headers(HOST), **_shared_headers(variant)}
    called, own = dict.fromkeys(_CALLED.findall(code)), _headers(code)
    imported = {name: there[name] for name in called if name not in own}
    return f"""(module
{_imported(imported)}
(import "{NAME}" "memory" (memory {pages(end)}))
(import "{NAME}" "table" {_TABLE})
(elem (i32.const 0) func $start $warp)
{data}
{code})"""


def pages(end: int) -> int:
    """Return the pages of memory that reach to an address."""
    return max(LEAST_PAGES, -(-end // PAGE))


@cache
def _shared_headers(variant: Shared) -> Mapping[str, str]:
    return _headers(layout.runtime(**variant._asdict()))


def _headers(code: str) -> dict[str, str]:
    """Return the parameters and results of functions by name."""
    return dict(_HEADER.findall(code))


def _imported(headers: Mapping[str, str]) -> str:
    return "\n".join(
        f'(import "{NAME}" "{name[1:]}" (func {name}{header}))' for name, header in headers.items()
    )
