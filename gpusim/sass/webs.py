"""Webs: a register reused for several values gets a name for each.

A web is the definitions that reach common uses. Guards are respected: a guarded write
reaches only uses with the same guard, until its predicate changes, and hides the
earlier definitions from them. Without that, an address and later data in the same register
seem to be one value, and all data seem to decide. So they would if one caller's values
flowed back to another: only registers that the function may write come from its returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpusim.program.dataflow import solve
from gpusim.program.flow import blocks
from gpusim.sass.decoding import Micro
from gpusim.sass.flow import Edge, targets
from gpusim.sass.listing import Guard
from gpusim.sass.operands import TRUES

# A definition: step and place among its results; (-1, 0) is a register's value at the start.
Definition = tuple[int, int, str]
# A predicate and its value for which a definition is hidden.
Literal = tuple[str, bool]
Reaching = Mapping[Definition, frozenset[Literal]]
State = dict[str, Reaching]

START = -1
NOTHING: frozenset[Literal] = frozenset()
NOWHERE: Reaching = {}


def _literal(guard: Guard) -> Literal:
    return guard.register, not guard.negated


def _visible(reaching: Reaching, guard: Guard | None) -> list[Definition]:
    if guard is None:
        return list(reaching)
    literal = _literal(guard)
    return [definition for definition, hidden in reaching.items() if literal not in hidden]


def _write(state: State, name: str, definition: Definition, guard: Guard | None) -> None:
    if guard is None:
        state[name] = {definition: NOTHING}
    else:
        literal = _literal(guard)
        opposite = (literal[0], not literal[1])
        made = {
            known: hidden | {literal}
            for known, hidden in state[name].items()
            if opposite not in hidden
        }
        made[definition] = frozenset([opposite])
        state[name] = made


def is_predicate(name: str) -> bool:
    """Return whether a name is that of a predicate."""
    return name[0] in "PQ" or name.startswith("UP")


def _forget(state: State, predicate: str) -> None:
    """Drop facts about definitions that depend on the old value of a predicate."""
    for name, reaching in state.items():
        if any(literal[0] == predicate for hidden in reaching.values() for literal in hidden):
            state[name] = {
                definition: frozenset(one for one in hidden if one[0] != predicate)
                for definition, hidden in reaching.items()
            }


def _along(state: State, edge: Edge) -> State:
    """Return the definitions that reach the end of an edge, given its guard."""
    if edge.only is not None or edge.but:
        state = {
            name: reaching if edge.carries(name) else NOWHERE for name, reaching in state.items()
        }
        for predicate in filter(is_predicate, edge.but):
            _forget(state, predicate)
    if edge.condition is None:
        return state
    literal = _literal(edge.condition)
    made = {}
    for name, reaching in state.items():
        if any(literal in hidden for hidden in reaching.values()):
            reaching = {d: hidden for d, hidden in reaching.items() if literal not in hidden}
        made[name] = reaching
    return made


def _merged(known: State, arriving: State) -> State:
    """Return a state with another edge's definitions; `known` itself where these add none."""
    made: State = {}
    for name, reaching in arriving.items():
        before = known[name]
        if reaching is before or not reaching:
            continue
        joined = dict(before)
        for definition, hidden in reaching.items():
            already = joined.get(definition)
            joined[definition] = hidden if already is None else already & hidden
        if joined != before:
            made[name] = joined
    return {**known, **made} if made else known


class Webs:
    """The webs of a kernel: the sets of its steps' register operands that are one value."""

    def __init__(self, micros: Sequence[Micro], ways: Sequence[tuple[Edge, ...]]) -> None:
        self._micros = micros
        self._ways = ways
        self._parent: dict[Definition, Definition] = {}
        self._uses: dict[tuple[int, str], Definition] = {}
        self._run()

    def read(self, step: int, name: str) -> Definition:
        """Return the web of a register that a step reads, named by one of its definitions."""
        return self._find(self._uses[step, name])

    def written(self, step: int, place: int, name: str) -> Definition:
        """Return the web of a register that a step writes."""
        return self._find((step, place, name))

    def held_at_start(self) -> Iterator[Definition]:
        """Yield the webs with a register's value at the start of the kernel."""
        for definition in list(self._parent):
            if definition[0] == START:
                yield self._find(definition)

    def _find(self, definition: Definition) -> Definition:
        parent = self._parent
        parent.setdefault(definition, definition)
        while parent[definition] != definition:
            parent[definition] = parent[parent[definition]]
            definition = parent[definition]
        return definition

    def _run(self) -> None:
        parts = blocks(targets(self._ways))

        def onward(begin: int, state: State) -> Iterator[tuple[int, State]]:
            state = dict(state)
            self._pass(state, parts[begin], joins=False)
            for edge in self._ways[parts[begin][-1]]:
                if edge.target < len(self._micros):
                    yield edge.target, _along(state, edge)

        states = solve({0: self._at_start()}, onward, _merged)
        for begin, state in states.items():
            self._pass(dict(state), parts[begin], joins=True)
        self.reached = frozenset(step for begin in states for step in parts[begin])

    def _at_start(self) -> State:
        names: dict[str, None] = {}
        for micro in self._micros:
            names.update(dict.fromkeys(s for s in micro.sources if isinstance(s, str)))
            names.update(dict.fromkeys((*micro.results, *filter(None, (micro.mask,)))))
            if micro.guard is not None:
                names[micro.guard.register] = None
        return {name: {(START, 0, name): NOTHING} for name in names}

    def _pass(self, state: State, part: range, *, joins: bool) -> None:
        """Go through a stretch of code; at last, join the definitions that each use sees."""
        for step in part:
            micro = self._micros[step]
            if joins:
                self._join_uses(state, step, micro)
            for place, name in enumerate(micro.results):
                _write(state, name, (step, place, name), micro.guard)
            for name in filter(is_predicate, micro.results):
                _forget(state, name)  # only now: the guard was the value before

    def _join_uses(self, state: State, step: int, micro: Micro) -> None:
        for source in (*micro.sources, micro.mask):
            if isinstance(source, str) and source:
                self._join(step, source, _visible(state[source], micro.guard))
        if micro.guard is not None and micro.guard.register not in TRUES:
            name = micro.guard.register
            self._join(step, name, list(state[name]))

    def _join(self, step: int, name: str, seen: list[Definition]) -> None:
        if not seen:  # no lane can come here with the guard true
            seen = [(START, 0, name)]
        first = self._find(seen[0])
        for other in seen[1:]:
            self._parent[self._find(other)] = first
        known = self._uses.get((step, name))
        if known is not None:  # read as an operand and as the guard
            self._parent[self._find(known)] = first
        self._uses[step, name] = first
