"""WebAssembly text as Python: each function becomes one of Python, for CPython to run.

An `i32` or `i64` is an integer without a sign, an `f32` or `f64` a scalar of NumPy, a `v128` an
array whose last axis is four words (`lanes`). Blocks and loops become `while True`, left by
`break`; a branch across several of them sets `_to`, which each loop in between looks at.

A loop with the label `$lanes` has independent iterations, for four lanes each: its vectors get a
further axis, and it runs once for all lanes, unless it takes lanes apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from gpusim.wasm.python_values import SEEN, Values, local_of, name_of
from gpusim.wasm.text import Node, parsed

LANES = "$lanes"


def translated(text: str) -> str:
    """Return the functions of a module as Python."""
    module = parsed(text)
    functions = [one for one in module[1:] if isinstance(one, list) and one[0] == "func"]
    returns = {str(one[1]): _results(one) for one in functions}
    for one in module[1:]:
        if one[0] == "import" and one[3][0] == "func":
            returns[str(one[3][1])] = _results(one[3])
    constants: dict[str, str] = {}
    own = [one for one in functions if not _is_indirect(one)]  # others are linked by their names
    code = [_Function(one, returns, constants).text() for one in own]
    return "\n".join([*(f"{name} = {value}" for value, name in constants.items()), *code])


def _is_indirect(function: Node) -> bool:
    return any(isinstance(one, list) and one[0] == "call_indirect" for one in function)


def _results(function: Node) -> int:
    return sum(len(one) - 1 for one in function if isinstance(one, list) and one[0] == "result")


class _Function(Values):
    """Writes one function."""

    def __init__(self, node: Node, returns: dict[str, int], constants: dict[str, str]) -> None:
        super().__init__(returns, constants)
        self._node = node
        self._labels: list[tuple[str, bool]] = []  # of enclosing `while`, with whether it loops
        self._numbers: dict[str, int] = {}

    def text(self) -> str:
        """Return the function."""
        parameters, zeros = [], []
        rest = 2
        for rest in range(2, len(self._node)):
            one = self._node[rest]
            if one[0] == "param":
                parameters += [local_of(name) for name in one[1::2]]
            elif one[0] == "local":
                zeros.append(f"{local_of(one[1])} = {'ZERO' if one[2] == 'v128' else '0'}")
            elif one[0] not in ("result", "export"):
                break
        else:
            rest = len(self._node)
        body = self._node[rest:]
        if values := self._values(body):
            self._write(f"return {', '.join(values)}")
        head = f"def {name_of(self._node[1])}({', '.join(parameters)}):"
        if any("_to = " in line for line in self._lines):
            zeros.append("_to = 0")
        return "\n".join([head, *(f" {zero}" for zero in zeros), *self._lines, " return 0"])

    # -- statements ----------------------------------------------------------------------

    def _statements(self, nodes: Node) -> None:
        """Write nodes that leave no value."""
        assert not self._values(nodes), nodes

    def _statement(self, node: Any) -> None:
        head = node[0]
        if head == "local.set":
            self._set(node)
        elif ".store" in head:
            self._store(node)
        elif head == "if":
            self._if(node)
        elif head in ("block", "loop"):
            self._block(node)
        elif head == "br":
            self._branch(node[1])
        elif head == "br_if":
            self._write(f"if {self._values(node[2:])[0]}:")
            self._inner(lambda: self._branch(node[1]))
        elif head == "return":
            self._write(f"return {', '.join(self._values(node[1:]))}")
        elif head == "unreachable":
            self._write("raise TrapError")
        elif head in ("memory.copy", "memory.fill"):
            self._write(f"{head.replace('.', '_')}({', '.join(self._values(node[1:]))})")
        elif head == "drop":
            self._write(self._values(node[1:])[0])
        else:
            assert head in ("call", "nop"), node
            self._write(self._value(node))

    def _set(self, node: Any) -> None:
        name, [value] = local_of(node[1]), self._values(node[2:])
        self._types.pop(name, None)
        if node[1].startswith("$v") and node[1][2:].isdigit():  # of straight-line code
            value = value.removesuffix(SEEN)
            self._types[name] = self._types.get(value, "u4")
        self._write(f"{name} = {value}")

    def _if(self, node: Any) -> None:
        then = next(n for n, one in enumerate(node) if one[0] == "then")
        [condition] = self._values(node[1:then])
        self._write(f"if {condition}:")
        self._inner(lambda: self._statements(node[then][1:]))
        if len(node) > then + 1:
            self._write("else:")
            self._inner(lambda: self._statements(node[then + 1][1:]))

    def _block(self, node: Any) -> None:
        label, body = node[1], node[2:]
        if label == LANES and self._run_wide(body):
            return
        chain = _chain(node)
        if chain is not None:
            self._dispatch(*chain)
            return
        if node[0] == "block" and not _is_target(label, body):
            self._statements(body)
            return
        self._numbers.setdefault(label, len(self._numbers) + 1)
        self._labels.append((label, node[0] == "loop"))
        self._write("while True:")
        before = len(self._lines)

        def inside() -> None:
            self._statements(body)
            self._write("break")

        self._inner(inside)
        self._labels.pop()
        left = {
            int(line.split("=")[1].split(";")[0])
            for line in self._lines[before:]
            if line.lstrip().startswith("_to = ") and "; break" in line
        }
        left.discard(self._numbers[label])
        if self._labels and left:
            self._pass_on(left)

    def _pass_on(self, left: set[int]) -> None:
        """Go on to the target of a branch across several blocks."""
        label, is_loop = self._labels[-1]
        number = self._numbers[label]
        if number in left:
            self._write(f"if _to == {number}:")
            self._inner(lambda: self._write(f"_to = 0; {'continue' if is_loop else 'break'}"))
        if left - {number}:
            self._write("if _to:")
            self._inner(lambda: self._write("break"))

    def _branch(self, label: str) -> None:
        innermost, is_loop = self._labels[-1]
        if label == innermost:
            self._write("continue" if is_loop else "break")
        else:
            self._write(f"_to = {self._numbers[label]}; break")

    def _dispatch(self, index: Any, bodies: list[Node]) -> None:
        """Begin at one of several blocks in a row."""
        [value] = self._values([index])
        at = self._temporary()
        self._write(f"{at} = {value}")
        for number, body in enumerate(bodies):
            self._write(f"if {at} <= {number}:")
            self._inner(partial(self._statements, body))

    # -- loops over lanes ----------------------------------------------------------------

    def _run_wide(self, body: Node) -> bool:
        """Write a loop over lanes as code for all of them; return False if that is not possible."""
        last = body[-1]
        lanes = last[2][1][1]  # (br_if $lanes (i32.lt_u (local.tee $g ...) (i32.const 32)))
        counters = {one[1]: step for one in body if (step := _step(one))}
        inner = [_gathered(one, lanes) for one in body[:-1] if not _step(one)]
        if any(_takes_apart(one, lanes) for one in inner):
            return False
        self._wide = counters
        for one in inner:
            self._statement(one)
        self._wide = {}
        return True


def _within(node: Any) -> Iterator[Any]:
    """Yield a list and all lists in it."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list) and one:
            yield one
            waiting += one


def _is_target(label: str, body: Node) -> bool:
    return any(one[0] in ("br", "br_if", "br_table") and label in one for one in _within(body))


def _chain(node: Any) -> tuple[Any, list[Node]] | None:
    """Return the index and the bodies of blocks around a table of branches to them, in order."""
    bodies, labels = [], []
    while node[0] == "block" and len(node) > 2 and node[2][0] == "block":
        labels.append(node[1])
        bodies.append(node[3:])
        node = node[2]
    if node[0] != "block" or len(node) < 3 or node[2][0] != "br_table":
        return None
    labels.append(node[1])
    bodies.append(node[3:])
    *targets, index = node[2][1:]
    assert targets == labels[::-1], "blocks in another order than their table"
    # A body stands behind the block that one leaves to get there: the last one, behind all of them.
    return index, bodies[::-1][1:]


def _step(node: Any) -> int:
    """Return how far a statement moves a counter on, 0 for any other statement."""
    if node[0] == "local.set" and node[2][0] == "i32.add":
        one, other = node[2][1:]
        if one == ["local.get", node[1]] and other[0] == "i32.const":
            return int(other[1])
    return 0


def _takes_apart(node: Any, lanes: str) -> bool:
    """Whether code has a value of its own for each lane."""
    return any(one == ["local.get", lanes] or one[0] in ("if", "loop") for one in _within(node))


def _gathered(node: Any, lanes: str) -> Any:
    """Return code of a loop over lanes in which bits are taken from all of them, or for all."""
    if not isinstance(node, list):
        return node
    counter = ["local.get", lanes]
    if node[0] == "i32.shl" and node[2] == counter and node[1][0] == "i32x4.bitmask":
        return ["gathered", _gathered(node[1][1], lanes)]
    if node[0] == "i32x4.ne" and node[1][0] == "v128.and" and node[1][1][0] == "i32x4.splat":
        bits = node[1][1][1]
        if bits[0] == "i32.shr_u" and bits[2] == counter:
            return ["masks", bits[1]]
    return [_gathered(one, lanes) for one in node]
