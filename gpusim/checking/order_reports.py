"""The missing order of two accesses at a flag, in words: for messages, fixes and pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gpusim.checking.access import Access
from gpusim.checking.findings import Finding, Place, Thread
from gpusim.checking.missing_order import (
    ACQUIRE,
    ACQUIRE_SCOPE,
    BARRIER,
    EARLY,
    FENCE_ORDER,
    FENCE_SCOPE,
    FLAG_ORDER,
    FLAG_SCOPE,
    RELEASE,
    Handover,
    Point,
)

NOUNS = {"load": "read", "store": "write", "atomic": "update"}
SETS = {"store": "sets", "atomic": "updates"}
NO_FENCE = "no fence"
SCOPE, ATOMIC = "scope", "atomic"  # of the accesses themselves
UNFENCED = "flag fence"  # of a race of the flag itself
LENIENT = "; --lenient takes the {what} for an acquire"

# Why a pair is unordered, and the fix, by what is missing. `fence` is a function's name in braces.
WHY = {
    RELEASE: "no fence between the {first} in line {before} and the {flag} {is_set} in line {set}",
    FENCE_ORDER: "the fence in line {fenced} comes before the {first} in line {before}, and none "
    "between it and the {flag} {is_set} in line {set}",
    FENCE_SCOPE: "the fence in line {fenced} has the scope of its block, and another block reads "
    "the {flag} {is_set} in line {set}",
    FLAG_SCOPE: "the {flag} {is_set} in line {set} and {is_read} in line {read} has the scope of a "
    "block, and the accesses are of two",
    FLAG_ORDER: "the {flag} is {is_set} in line {set} before the {first} in line {before}",
    EARLY: "the {flag} that line {read} reads was set in line {set} before the {first} in line "
    "{before}, and no later one is waited for",
    BARRIER: "no barrier between the {first} in line {before} and the {flag} that another thread "
    "of its block sets in line {set}",
    ACQUIRE: "no fence between the {flag} {is_read} in line {read} and the {second} in line "
    "{behind}",
    ACQUIRE_SCOPE: "the fence in line {fenced_behind} has the scope of its block, and another "
    "block set the {flag} {is_read} in line {read}",
}
FIXES = {
    RELEASE: "put {fence} between the {first} in line {before} and line {set}",
    FENCE_ORDER: "put {fence} after the {first} in line {before}, before line {set}",
    FENCE_SCOPE: "use {fence} in line {fenced}",
    FLAG_SCOPE: "use operations of the device's scope in lines {set} and {read}, not of a block's",
    FLAG_ORDER: "move line {set} after the {first} in line {before}, with {fence} between the two",
    EARLY: "let one of the two threads wait for a flag set by the other one after its access; "
    "a ring buffer of n items is full at n",
    BARRIER: "put {{syncthreads}}() between line {before} and line {set}",
    ACQUIRE: "put {fence} after line {read}",
    ACQUIRE_SCOPE: "use {fence} in line {fenced_behind}",
}
# Added to fixes where a relaxed access sets or reads the flag.
STRONGER = {
    RELEASE: ", or make line {set} a release (cuda::memory_order_release)",
    ACQUIRE: ", or make line {read} an acquire (cuda::memory_order_acquire)",
}


def unequal(race: Finding, before: Access, now: Access) -> Finding:
    """Return the race of atomic and other accesses, or of block scope, with the reason."""
    accesses = before, now
    if before.is_narrow or now.is_narrow:
        lines = " and ".join(sorted({str(one.line) for one in accesses if one.is_narrow}))
        why, missing = f"the atomic access in line {lines} has the scope of its block", SCOPE
    elif before.is_relaxed != now.is_relaxed:
        plain = now if before.is_relaxed else before
        how = "volatile, not atomic" if plain.is_volatile else "not atomic"
        why, missing = f"the {NOUNS[plain.kind]} in line {plain.line} is {how}", ATOMIC
    else:
        return race
    return replace(race, message=_because(race, why), missing=missing)


def unawaited(race: Finding, line: int) -> Finding:
    """Return the race after a copy that its own thread awaited in a line."""
    why = f"the wait in line {line} orders its own thread alone, and no barrier follows"
    fix = f"put {{syncthreads}}() after the wait in line {line}"
    return replace(race, message=_because(race, why), missing=BARRIER, fix_text=fix)


def _because(race: Finding, why: str) -> str:
    """Return the message of a race with another reason."""
    return f"{race.message.rpartition(', ')[0]}, {why}"


@dataclass(frozen=True)
class Reporter:
    """Words for flags: `access_at` a time, the `line_at` a time, and an element's name."""

    access_at: Callable[[int], Access]
    line_at: Callable[[int], int]
    element: Callable[[Access, int], tuple[str, int]]
    thread: Callable[[int], Thread]

    def explained(
        self, finding: Finding, accesses: tuple[Access, Access], found: Handover
    ) -> Finding:
        """Return a race with the missing operation in its message, fix and picture."""
        first, second = finding.places
        setting, reading = (self.access_at(one.time) for one in (found.released, found.acquired))
        array, index = self.element(setting, found.place)
        is_far = found.released.thread >> 10 != found.acquired.thread >> 10
        kind = "lock" if found.locks else "flag"
        words: dict[str, str | int] = {
            "flag": f"{kind} {array}[{index}]",
            "first": NOUNS[accesses[0].kind],
            "second": NOUNS[accesses[1].kind],
            "before": first.line,
            "behind": second.line,
            "set": setting.line,
            "is_set": "given back" if found.locks else "set",
            "is_read": "taken" if found.locks else "read",
            "read": reading.line,
            "fenced": self._line(found.fence),
            "fenced_behind": self._line(found.fence_behind),
            "fence": "{threadfence}()" if is_far else "{threadfence_block}()",
        }
        missing = found.missing
        # Of an earlier iteration, or moved there by the compiler.
        early = {FENCE_ORDER: self._line(found.fence), FLAG_ORDER: setting.line}.get(missing, 0)
        if early > first.line:
            missing = EARLY if missing == FLAG_ORDER and found.fence else RELEASE
        is_lenient = missing in (ACQUIRE, ACQUIRE_SCOPE)
        why = WHY[missing].format(**words) + (LENIENT.format(what=kind) if is_lenient else "")
        flag = (
            Place(
                setting.line, f"{SETS[setting.kind]} {array}[{index}]", self._who(found.released)
            ),
            Place(reading.line, f"reads {array}[{index}]", self._who(found.acquired)),
        )
        return replace(
            finding,
            message=_because(finding, why),
            fix_text=f"{FIXES[missing]}{self._stronger(missing, setting, reading)}".format(**words),
            missing=missing,
            flag=array,
            sequence=self._sequence(finding.places, flag, replace(found, missing=missing)),
        )

    @staticmethod
    def _stronger(missing: str, setting: Access, reading: Access) -> str:
        access = {RELEASE: setting, ACQUIRE: reading}.get(missing)
        is_relaxed = access is not None and access.is_relaxed and access.kind != "atomic"
        return STRONGER[missing] if is_relaxed else ""

    def unfenced(self, race: Finding) -> Finding:
        """Return the race of a volatile flag that is set without a fence before."""
        first, second = race.places
        setting = first if first.does == "writes" else second
        why = f"no fence before the volatile flag is set in line {setting.line}"
        return replace(
            race,
            message=_because(race, why),
            fix_text=f"put {{threadfence}}() before line {setting.line}, and after the read of "
            "the flag",
            missing=UNFENCED,
            flag=race.array,
            sequence=tuple(
                place
                for one in race.places
                for place in ((Place(0, NO_FENCE, one.thread), one) if one is setting else (one,))
            ),
        )

    def _sequence(
        self, places: tuple[Place, ...], flag: tuple[Place, Place], found: Handover
    ) -> tuple[Place, ...]:
        """Return accesses, fences and flag in the order that they were run in."""
        (first, second), (setting, reading) = places, flag
        fence = self._fence(found.fence, setting.thread)
        behind = self._fence(found.fence_behind, second.thread)
        if found.missing in (FLAG_ORDER, BARRIER, EARLY):
            return (setting, first, reading, second)
        if found.missing == FENCE_ORDER:
            return (fence, first, self._fence(None, first.thread), setting, reading, second)
        if found.missing in (RELEASE, FENCE_SCOPE):
            return (first, fence, setting, reading, second)
        return (first, fence, setting, reading, behind, second)

    def _fence(self, point: Point | None, thread: Thread | None) -> Place:
        if point is None:
            return Place(0, NO_FENCE, thread)
        return Place(self._line(point), "fence", self._who(point))

    def _who(self, point: Point) -> Thread:
        return self.thread(point.thread)

    def _line(self, point: Point | None) -> int:
        return 0 if point is None else self.line_at(point.time)
