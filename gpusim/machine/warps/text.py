"""The translation of warps: functions that the modules of all programs share, kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from gpusim.host.disk_cache import DiskCache, key
from gpusim.machine.warps import (
    accesses,
    banks,
    barrier_words,
    barriers,
    bulk_copies,
    checked_steps,
    clocks,
    convergence,
    copies,
    races,
    scheduling,
    steps,
    turns,
)
from gpusim.wasm.sources import digest

_SOURCES = ("gpusim.machine.warps", "gpusim.wasm")  # of the texts
_TEXTS = DiskCache("warps", most_bytes=1 << 21)
_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    convergence.append,
    convergence.remove,
    convergence.hold,
    convergence.new_path,
    convergence.give,
    convergence.take,
    convergence.release,
    convergence.gather,
    scheduling.begin,
    banks.wavefronts,
    accesses.find,
    accesses.is_there,
    accesses.new_set,
    accesses.counted,
    accesses.most_alike,
    accesses.most_of_a_bank,
    accesses.fit_wide,
    accesses.fit,
    accesses.is_outside,
    accesses.wavefronts_again,
    accesses.mark,
    accesses.mark_row,
    accesses.note,
    accesses.is_in_order,
    accesses.reached,
    convergence.part,
    convergence.get_token,
    convergence.set_token,
    barriers.asked,
    barriers.sync,
    barriers.arrive,
    barriers.open_named,
    barriers.count_arrival,
    copies.commit_copies,
    copies.begin_copy,
    copies.land_copies,
    copies.forget_copies,
    barrier_words.arrived,
    barrier_words.dropped,
    barrier_words.arrived_in_halves,
    barrier_words.expecting,
    barrier_words.arrived_expecting,
    barrier_words.completed,
    bulk_copies.begin_bulk,
    bulk_copies.commit_bulk,
    bulk_copies.land_bulk,
    bulk_copies.land_groups,
)


_STEPS: tuple[Callable[..., Any], ...] = (
    steps.begun,
    steps.opened,
    steps.decided,
    steps.detail,
    steps.narrow,
    steps.side_by_side,
    steps.accessed,
    steps.keep_told,
    steps.told_again,
    steps.looked_up,
)


_RACES: tuple[Callable[..., Any], ...] = (
    races.begins,
    races.opened,
    races.meets,
    races.cell_load,
    races.cell_store,
    races.cell_atomic,
    races.cell_poll,
    races.of_block,
    races.of_phase,
    races.shares,
    races.swapped,
    races.adds,
)


_CHECKED: Mapping[str, Callable[..., Any]] = {
    "begins": races.begins,
    "swapped": races.swapped,
    "adds": races.adds,
    "check": checked_steps.check,
    "able_in_array": checked_steps.able_in_array,
    "able_in_own": checked_steps.able_in_own,
    "able_anywhere": checked_steps.able_anywhere,
    "clear": checked_steps.clear,
    "keep_results": checked_steps.keep_results,
    "as_expected": checked_steps.as_expected,
    "opened": checked_steps.opens,
    "lets_pass": checked_steps.lets_pass,
    "met": checked_steps.met,
}


_TURNS: tuple[Callable[..., Any], ...] = (turns.appended, turns.removed, turns.united)
_CLOCKS: tuple[Callable[..., Any], ...] = (
    clocks.keep_lines,
    clocks.fetch_lines,
    clocks.serve,
    clocks.poll,
    clocks.park,
    clocks.poll_served,
    clocks.write_words,
)


@cache
def text(
    *, recording: bool, detecting: bool, checking: bool, in_order: bool, by_clock: bool
) -> str:
    """Return the functions of a module: also to record steps, look for races, or take turns.

    With `checking` the steps of a check are written down; `by_clock` the warp with the smallest
    clock runs next.
    """
    name = key([digest(_SOURCES), str((recording, detecting, checking, in_order, by_clock))])
    kept = _TEXTS.load(name)
    if kept is not None:
        return kept.decode()
    from gpusim.wasm.module import functions_of

    functions = _FUNCTIONS + _STEPS * recording + _RACES * detecting + _TURNS * in_order
    functions += _CLOCKS * by_clock
    run = turns.run_in_order if in_order else scheduling.run_in_turn
    if by_clock:
        run = clocks.run_by_clock
    named = (
        {one.__name__: one for one in functions} | {"run": run} | dict(_CHECKED if checking else {})
    )
    made = functions_of(named, _SOURCES)
    _TEXTS.store(name, made.encode())
    return made
