"""Asynchronous copies from global to shared memory: pending copies, and waits for them.

A copy (PTX cp.async) follows the earlier accesses of its thread, and reads and writes at any time
until that thread waits for its group; until then nothing orders it, not even for the thread itself.
Then it counts as an access of the thread at the wait. Copies that arrive at an mbarrier
(cp.async.mbarrier.arrive) are pending until a thread of the block tests the barrier's phase, and
then count as accesses at the arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpusim.checking.access import Access
from gpusim.checking.clocks import Clocks
from gpusim.checking.element_access import ElementAccess, Heard, thread_of
from gpusim.typing import Array

# Waits until at most some groups are pending, by words of a source that uses them.
WAITS = {
    "cp.async": "cp.async.wait_group {}",
    "__pipeline_": "__pipeline_wait_prior({})",
    "make_pipeline": "consumer_wait()",
    "cuda::pipeline": "consumer_wait()",
    "cuda::barrier": "arrive_and_wait()",
    "cg::memcpy_async": "wait_prior<{}>(group)",
    "cooperative_groups::memcpy_async": "wait_prior<{}>(group)",
}
COMMITS = "cp.async.commit_group, __pipeline_commit"


def wait_for(text: str, line: int) -> str:
    """Return the wait for the copy in a line of a source, with a place for the number of groups."""
    for part in (text.splitlines()[line - 1 : line], [text]):
        for word, wait in WAITS.items():
            if any(word in one for one in part):
                return wait
    return WAITS["cp.async"]


class Pending(NamedTuple):
    """Why a copy is pending: what is `missing`, in words; `left` groups were committed after it.

    `line` is the line of a wait that allows too many pending groups, or 0.
    """

    missing: str
    why: str
    left: int = 0
    line: int = 0

    def fix(self, wait: str, line: int, barrier: int, *, is_own: bool) -> str:
        """Return the remedy before an access in a line, with a barrier's line before it, or 0.

        A thread waits for copies of its own alone: before another one's access a barrier follows.
        """
        named = wait.format(self.left)
        if self.missing == "commit":
            return f"commit the copy's group ({COMMITS}) before the wait in line {self.line}"
        if self.line:
            return f"use {named} in line {self.line}"
        if barrier and not is_own:
            return f"put {named} before the barrier in line {barrier}, in the thread that copies"
        if not is_own:
            return (
                f"put {named}, in the thread that copies, and {{syncthreads}}() before line {line}"
            )
        return f"put {named} before line {line}"


NO_WAIT = "no wait for the copy between the two"
UNCOMMITTED = "the copy is in no group that its thread has committed"


class Groups:
    """The number of committed copy groups of each lane of a batch, by its place there.

    For each lane's last wait, `waited` is the number of groups committed until then, `left` the
    most that it allows to be pending, and `line` its source line.
    """

    def __init__(self, lanes: int) -> None:
        self.committed = np.zeros(lanes, dtype=np.int64)
        self.waited, self.left, self.line = (np.zeros_like(self.committed) for _ in range(3))

    def commit(self, places: Array) -> None:
        """Make a group of the copies that lanes have issued since their last one."""
        self.committed[places] += 1

    def ended(self, places: Array, allowed: int, line: int) -> Array:
        """Return the completed groups by lane, after waits until at most `allowed` are pending.

        It is 0 for lanes that do not wait.
        """
        self.waited[places] = self.committed[places]
        self.left[places] = np.minimum(allowed, self.committed[places])
        self.line[places] = line
        ended = np.zeros_like(self.committed)
        ended[places] = self.committed[places] - allowed
        return ended


@dataclass(frozen=True)
class Copy:
    """The elements that a step of copies reads, or writes, in one memory, until they are awaited.

    `places` are the lanes as `of` counts them, `groups` the groups that entries belong to.
    """

    of: Groups
    access: Access
    element: Array
    packed: Array
    places: Array
    groups: Array

    @classmethod
    def begun(cls, groups: Groups, access: Access, touch: ElementAccess, places: Array) -> Copy:
        """Return the copies that lanes begin with a touch."""
        return cls(groups, access, touch.element, touch.packed, places, groups.committed[places])

    def take(self, which: Array) -> Copy:
        """Return some of the entries."""
        parts = (self.element, self.packed, self.places, self.groups)
        return Copy(self.of, self.access, *(part[which] for part in parts))

    def is_of(self, groups: Groups, ended: Array) -> Array:
        """Return a mask of the entries in completed groups."""
        if self.of is not groups:
            return np.zeros(len(self.groups), dtype=bool)
        return np.asarray(self.groups < ended[self.places])

    def pending(self, entry: int) -> Pending:
        """Return why an entry's copy has not ended."""
        lane, group, of = self.places[entry], int(self.groups[entry]), self.of
        left, line = int(of.left[lane]), int(of.line[lane])
        committed, waited = int(of.committed[lane]), int(of.waited[lane])
        if group == committed and line:
            return Pending("commit", UNCOMMITTED, line=line)
        if group >= waited:
            return Pending("wait", NO_WAIT, max(committed - group - 1, 0))
        groups = "1 group of copies" if left == 1 else f"{left} groups of copies"
        why = f"the wait in line {line} leaves {groups} pending, this one among them"
        return Pending("wait for all", why, waited - group - 1, line)

    def touch(self, time: int, clocks: Clocks) -> ElementAccess:
        """Return the entries as accesses of their threads, made at the wait."""
        rows, lanes = self.places // 32 % clocks.placement.rows, self.places % 32
        return ElementAccess(
            time,
            self.element,
            thread_of(self.packed),
            clocks.barrier[rows],
            clocks.warp_sync[rows],
            None if clocks.pairs is None else clocks.pairs[rows, lanes],
            lambda: np.zeros((1, len(rows))),
            heard=None if clocks.meetings is None else Heard(clocks.meetings.known, rows),
        )


class InFlight:
    """Pending copies of one memory: `begun` is the last one of each element, packed.

    Copies that arrive at mbarriers, the elements `barriers`, are kept with their accesses.
    """

    def __init__(self, elements: int) -> None:
        self.begun = np.zeros(elements, dtype=np.int64)
        self.barriers = np.zeros(elements, dtype=bool)
        self._copies: list[Copy] = []
        self._arriving: list[tuple[Copy, ElementAccess]] = []

    def arrive(self, copy: Copy, touch: ElementAccess) -> None:
        """Keep copies that have arrived at a barrier pending until a thread waits for it."""
        self.begun[copy.element] = copy.packed
        self._arriving.append((copy, touch))

    def land(self, begin: int, end: int) -> list[ElementAccess]:
        """Return the accesses of copies that arrived to some elements, and forget these."""
        landed, left = [], []
        for copy, touch in self._arriving:
            here = (begin <= copy.element) & (copy.element < end)
            ended = copy.take(here & (self.begun[copy.element] == copy.packed))
            self.begun[ended.element] = 0
            if here.any():
                landed.append(touch.take(np.flatnonzero(here)))
            if not here.all():
                left.append((copy.take(~here), touch.take(np.flatnonzero(~here))))
        self._arriving = left
        return landed

    def begin(self, copy: Copy) -> Array:
        """Record new copies; return the entries that share their element."""
        self._copies.append(copy)
        self.begun[copy.element] = copy.packed
        return np.asarray(self.begun[copy.element] != copy.packed)

    def pending(self, element: int) -> Pending:
        """Return why the last copy of an element has not ended."""
        for copy in reversed(self._copies):
            found = (copy.element == element) & (copy.packed == self.begun[element])
            if found.any():
                return copy.pending(int(np.argmax(found)))
        return Pending("wait", NO_WAIT)

    def end(self, groups: Groups, ended: Array) -> list[Copy]:
        """Return the copies of groups that have ended, and forget them."""
        found, left = [], []
        for copy in self._copies:
            done = copy.is_of(groups, ended)
            if done.any():
                found.append(copy.take(done))
            if not done.all():
                left.append(copy.take(~done) if done.any() else copy)
        if found:
            self._keep(left, found)
        return found

    def _keep(self, left: list[Copy], found: list[Copy]) -> None:
        """Keep pending copies, perhaps of the same elements as completed ones."""
        for copy in found:
            self.begun[copy.element] = 0
        for copy in left:
            self.begun[copy.element] = copy.packed
        self._copies = left
