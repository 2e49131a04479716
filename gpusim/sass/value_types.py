"""Type inference for words of shared memory, from the instructions that produce and use them.

Machine code loads and stores bits. An addition of floats proves that they are floats: each row of
the table of mnemonics gives the types of its operands, and copies pass them on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.sass.form import REGISTERS, Form

# Codes of operands with a type; all others stand for anything of 32 or 64 bits.
TYPES: Mapping[str, str] = {"f": "float32", "d": "float64", "i": "int32", "I": "int64"}
HALF = "int64"  # of a register that carries into another, or takes a carry
UNTYPED = "uint32"  # of an access that moves whole words
DEFAULT = "int32"
WHOLE_WORDS = (*TYPES.values(), "uint32", "uint64")
NO_ARRAYS: Mapping[str, str] = MappingProxyType({})


def shared_types(program: Program, arrays: Mapping[str, str] = NO_ARRAYS) -> dict[int, str]:
    """Return by pc the type of the words that each access to shared memory loads or stores.

    `arrays` are the types of array arguments by name: words loaded from one or stored to it have
    its type. An access of unused values has the type of most others, and
    int32 if there is none.
    """
    same = _Copies(program)
    votes = _votes(program, same, arrays)
    found: dict[int, str] = {}
    silent = []
    for pc, instruction in enumerate(program.instructions):
        memory = instruction.memory
        if memory is None or memory.space != "shared":
            continue
        moved = (votes.get(same.of(one), Counter()) for one in _moved(instruction))
        if memory.dtype.name != UNTYPED:
            found[pc] = memory.dtype.name
        elif heard := sum(moved, Counter()):
            found[pc] = heard.most_common(1)[0][0]
        else:
            silent.append(pc)
    usual = Counter(found.values()).most_common(1)
    return found | dict.fromkeys(silent, usual[0][0] if usual else DEFAULT)


def _votes(program: Program, same: _Copies, arrays: Mapping[str, str]) -> dict[int, Counter[str]]:
    """Return the votes for each value's type, by its representative register."""
    votes: dict[int, Counter[str]] = {}
    for instruction in program.instructions:
        for register, kind in (*_uses(instruction), *_of_array(instruction, arrays)):
            if register not in same.fixed:
                votes.setdefault(same.of(register), Counter())[kind] += 1
    return votes


def _uses(instruction: Instruction) -> Iterator[tuple[int, str]]:
    """Yield registers with the types that an instruction takes or gives them for."""
    form = instruction.detail
    if not isinstance(form, Form):
        return
    results = "".join(form.results[number] for number in form.kept)
    types = {**TYPES, "u": HALF, "r": HALF} if _carries(form, results) else TYPES
    for codes, registers in ((form.sources, instruction.src), (results, instruction.dst)):
        place = 0
        for code in codes:
            for register in registers[place : place + REGISTERS[code]]:
                if code in types:
                    yield register, types[code]
            place += REGISTERS[code]


def _carries(form: Form, results: str) -> bool:
    """Return whether an addition is one half of a wider one."""
    return "X" in form.modifiers or ("p" in results and results[0] != "p")


def _of_array(instruction: Instruction, arrays: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the registers that an access to an array argument fills or stores, with its type."""
    memory = instruction.memory
    if memory is None or memory.space == "shared" or memory.dtype.name != UNTYPED:
        return
    kind = arrays.get(memory.name, "")
    if kind in WHOLE_WORDS:
        for register in _moved(instruction):
            yield register, kind


def _moved(instruction: Instruction) -> tuple[int, ...]:
    """Return the registers that an access fills or stores; the first source is the address."""
    return instruction.dst or instruction.src[1:]


class _Copies:
    """Registers that hold the same value at some time, by one of them (union-find).

    `fixed` registers hold values common to many instructions: no copies.
    """

    def __init__(self, program: Program) -> None:
        self._parent: dict[int, int] = {}
        self.fixed = program.immediates.keys() | program.constants.keys()
        for instruction in program.instructions:
            for source in _copied(instruction):
                if source not in self.fixed:
                    self._parent[self.of(source)] = self.of(instruction.dst[0])

    def of(self, register: int) -> int:
        """Return the representative of all copies of this register."""
        while register in self._parent and self._parent[register] != register:
            register = self._parent[register]
        return register


def _copied(instruction: Instruction) -> tuple[int, ...]:
    """Return the sources that the result is a copy of."""
    form = instruction.detail
    if OPS[instruction.op].is_copy:
        return instruction.src[:1]
    if OPS[instruction.op].kind == "shuffle":
        return instruction.src[:1] if "value" in form else ()
    if not isinstance(form, Form):
        return ()
    if form.name.startswith(("SEL", "USEL")):
        return instruction.src[:2]
    return instruction.src[2:] if "MOV" in form.modifiers else ()
