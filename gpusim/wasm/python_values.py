"""WebAssembly's values as expressions of Python (`python_code`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

M32, M64 = "0xFFFFFFFF", "0xFFFFFFFFFFFFFFFF"
S32, S64 = "0x80000000", "0x8000000000000000"
_ACCESS = re.compile(r"([if])(32|64)\.(load|store)(8|16|32)?(?:_([su]))?$")
_MOVED = re.compile(r"load\((\w+(?: \+ \w+)?)\)$")  # a vector at an address
_WORD = re.compile(r"[^A-Za-z0-9_]")
_STATEMENTS = frozenset((
    "local.set", "call_void", "drop", "if", "block", "loop", "br", "br_if", "br_table", "return",
    "unreachable", "memory.copy", "memory.fill", "nop", "v128.store",
))  # fmt: skip


def _of_integers(bits: int) -> dict[str, str]:
    most, sign = (M32, S32) if bits == 32 else (M64, S64)
    signed = {"lt_s": "<", "gt_s": ">", "le_s": "<=", "ge_s": ">="}
    forms = {
        "add": f"({{0}} + {{1}} & {most})",
        "sub": f"({{0}} - {{1}} & {most})",
        "mul": f"({{0}} * {{1}} & {most})",
        "and": "({0} & {1})",
        "or": "({0} | {1})",
        "xor": "({0} ^ {1})",
        "shl": f"({{0}} << ({{1}} & {bits - 1}) & {most})",
        "shr_u": f"({{0}} >> ({{1}} & {bits - 1}))",
        "shr_s": f"((({{0}} ^ {sign}) - {sign}) >> ({{1}} & {bits - 1}) & {most})",
        "eq": "({0} == {1})",
        "ne": "({0} != {1})",
        "eqz": "(not {0})",
        "div_u": "({0} // {1})",
        "rem_u": "({0} % {1})",
        "div_s": f"divided({{0}}, {{1}}, {bits})",
        "rem_s": f"rest({{0}}, {{1}}, {bits})",
        "popcnt": "({0}).bit_count()",
        "clz": f"({bits} - ({{0}}).bit_length())",
        "ctz": f"zeros_below({{0}}, {bits})",
        "extend8_s": f"((({{0}} & 255) ^ 128) - 128 & {most})",
        "extend16_s": f"((({{0}} & 65535) ^ 32768) - 32768 & {most})",
        "extend32_s": f"((({{0}} & {M32}) ^ {S32}) - {S32} & {most})",
    }
    for name, one in signed.items():
        forms[name] = f"(({{0}} ^ {sign}) {one} ({{1}} ^ {sign}))"
        forms[name[:-1] + "u"] = f"({{0}} {one} {{1}})"
    return {f"i{bits}.{name}": form for name, form in forms.items()}


def _of_floats(bits: int) -> dict[str, str]:
    operators = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
    compared = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
    forms = {name: f"({{0}} {one} {{1}})" for name, one in {**operators, **compared}.items()}
    forms |= {
        "neg": "(-{0})", "abs": "abs({0})", "floor": "floor({0})", "nearest": "nearest({0})",
        "copysign": "copysign({0}, {1})",
        f"reinterpret_i{bits}": f"float{bits}_of({{0}})",
        "convert_i64_s": f"converted({{0}}, 'i8', 'f{bits // 8}')",
        "convert_i64_u": f"converted({{0}}, 'u8', 'f{bits // 8}')",
    }  # fmt: skip
    return {f"f{bits}.{name}": form for name, form in forms.items()}


_FORMS = {
    **_of_integers(32),
    **_of_integers(64),
    **_of_floats(32),
    **_of_floats(64),
    "i32.wrap_i64": f"({{0}} & {M32})",
    "i64.extend_i32_u": "{0}",
    "i64.extend_i32_s": f"(({{0}} ^ {S32}) - {S32} & {M64})",
    "i32.reinterpret_f32": "bits_of_float({0})",
    "i64.reinterpret_f64": "bits_of_float({0})",
    "i64.trunc_f64_s": f"(int({{0}}) & {M64})",
} | {
    f"i{to}.trunc_sat_f{of}_{sign}": f"truncated({{0}}, {to}, {sign == 's'})"
    for to in (32, 64)
    for of in (32, 64)
    for sign in "su"
}


class _Form(NamedTuple):
    """An operation on vectors, with the types of the lanes of its operands and its result."""

    of: str
    text: str
    to: str


def _of_lanes(shape: str, plain: str, signed: str) -> dict[str, _Form]:
    operators = {"add": "+", "sub": "-", "mul": "*"}
    compared = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
    word = f"u{plain[1]}"
    is_float = shape[0] == "f"
    forms = {name: _Form(plain, f"({{0}} {one} {{1}})", plain) for name, one in operators.items()}
    for name, one in compared.items():
        signs = {"": plain}
        if not is_float and name not in ("eq", "ne"):
            signs = {"_s": signed, "_u": plain}
        for sign, of in signs.items():
            forms[name + sign] = _Form(of, f"(({{0}} {one} {{1}}) * ALL_{word})", word)
    if is_float:
        functions = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc"}
        functions["nearest"] = "nearest"
        forms |= {name: _Form(plain, f"{one}({{0}})", plain) for name, one in functions.items()}
        forms["div"] = _Form(plain, "({0} / {1})", plain)
    else:
        forms["neg"] = _Form(plain, "(-{0})", plain)
        most = 8 * int(plain[1]) - 1
        forms["shl"] = _Form(plain, f"({{0}} << ({{1}} & {most}))", plain)
        forms["shr_u"] = _Form(plain, f"({{0}} >> ({{1}} & {most}))", plain)
        forms["shr_s"] = _Form(signed, f"({{0}} >> ({{1}} & {most}))", signed)
    return {f"{shape}.{name}": form for name, form in forms.items()}


_LANES = {
    **_of_lanes("i32x4", "u4", "i4"),
    **_of_lanes("i64x2", "u8", "i8"),
    **_of_lanes("f32x4", "f4", "f4"),
    **_of_lanes("f64x2", "f8", "f8"),
    "f64x2.promote_low_f32x4": _Form("f4", "{0}[..., :2].astype(f8)", "f8"),
}
for _sign, _of in (("s", "i"), ("u", "u")):
    for _half, _lanes in (("low", ":2"), ("high", "2:")):
        _part = f"[..., {_lanes}].astype({_of}8)"
        _LANES[f"i64x2.extend_{_half}_i32x4_{_sign}"] = _Form(f"{_of}4", f"{{0}}{_part}", f"{_of}8")
        _LANES[f"i64x2.extmul_{_half}_i32x4_{_sign}"] = _Form(
            f"{_of}4", f"({{0}}{_part} * {{1}}{_part})", f"{_of}8"
        )
    _LANES[f"f32x4.convert_i32x4_{_sign}"] = _Form(f"{_of}4", "{0}.astype(f4)", "f4")
    _LANES[f"f64x2.convert_low_i32x4_{_sign}"] = _Form(f"{_of}4", "{0}[..., :2].astype(f8)", "f8")
_BITS = {
    "v128.and": "({0} & {1})",
    "v128.or": "({0} | {1})",
    "v128.xor": "({0} ^ {1})",
    "v128.not": "(~{0})",
    "v128.bitselect": "v128_bitselect({0}, {1}, {2})",
}
_TOGETHER = {
    f"i{8 * int(of[1])}.{name}": _LANES[f"{shape}.{name}"]
    for shape, of in (("i32x4", "u4"), ("i64x2", "u8"))
    for name in ("shl", "shr_u", "shr_s")
} | {
    f"${name}_{sign}{8 * size}": _Form(f"{kind}{size}", f"{name}({{0}}, {{1}})", f"{kind}{size}")
    for name in ("floor_divide", "remainder")
    for sign, kind in (("s", "i"), ("u", "u"))
    for size in (4, 8)
}
SEEN = ".view(u4)"  # how a vector with other lanes than words ends, as a value


def name_of(name: str) -> str:
    """Return the name in Python of a function."""
    return "f_" + _WORD.sub("_", name[1:])


def local_of(name: str) -> str:
    """Return the name in Python of a variable."""
    return "v" + _WORD.sub("_", name)


class Values:
    """Writes the values of a function; `returns` are the numbers of results of all functions."""

    def __init__(self, returns: dict[str, int], constants: dict[str, str]) -> None:
        self._returns, self._constants = returns, constants
        self._lines: list[str] = []
        self._depth = 1
        self._temporaries = 0
        self._wide: dict[str, int] = {}  # counters of a loop over lanes, with their steps
        self._types: dict[str, str] = {}  # of the lanes of vectors, by expression

    def _statement(self, node: Any) -> None:
        raise NotImplementedError

    def _yields(self, node: Any) -> bool:
        """Whether a node leaves a value."""
        head = node[0]
        if head == "call":
            return self._returns[node[1]] > 0
        if head == "if":
            return any(isinstance(one, list) and one[0] == "result" for one in node[1:2])
        return head not in _STATEMENTS and ".store" not in head

    # -- lines ---------------------------------------------------------------------------

    def _write(self, line: str) -> None:
        self._lines.append(" " * self._depth + line)

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"_t{self._temporaries}"

    def _inner(self, write: Callable[[], Any]) -> Any:
        """Write lines one step deeper."""
        self._depth += 1
        before = len(self._lines)
        made = write()
        if len(self._lines) == before and made is None:
            self._write("pass")
        self._depth -= 1
        return made

    def _values(self, nodes: Any) -> list[str]:
        """Return expressions of the values that nodes leave, after lines of their statements."""
        found: list[str] = []
        for node in nodes:
            before = len(self._lines)
            if node[0] == "local.set" and len(node) == 2:
                self._write(f"{local_of(node[1])} = {found.pop()}")
                made = ""
            elif node == ["drop"]:
                self._write(found.pop())
                made = ""
            elif self._yields(node):
                made = self._value(node)
            else:
                made = ""
                self._statement(node)
            lines = self._lines[before:]
            if lines and any(not _is_fixed(one) for one in found):
                del self._lines[before:]
                for number, one in enumerate(found):
                    if not _is_fixed(one):
                        found[number] = self._temporary()
                        self._write(f"{found[number]} = {one}")
                self._lines += lines
            if made:
                found.append(made)
        return found

    def _value(self, node: Any) -> str:
        head = node[0]
        if head == "local.get":
            return self._seen(local_of(node[1]))
        if head == "local.tee":
            [value] = self._values(node[2:])
            return f"({local_of(node[1])} := {value})"
        if head.endswith(".const"):
            return self._constant(node)
        if head == "call":
            called, given = name_of(node[1]), self._values(node[2:])
            if self._wide:
                return f"by_lane({', '.join([called, *given])})"
            return f"{called}({', '.join(given)})"
        if head == "select":
            return f"select({', '.join(self._values(node[1:]))})"
        if head == "if":
            return self._choice(node)
        if head == "gathered":
            return f"bits_of({self._values(node[1:])[0]})"
        if head == "masks":
            return f"masks_of({self._values(node[1:])[0]})"
        if ".load" in head:
            return self._load(node)
        form = _FORMS.get(head)
        if form is None:
            return self._lanes(node)
        return form.format(*self._values(node[1:]))

    def _lanes(self, node: Any) -> str:
        """Return an operation on vectors."""
        together = _together(node)
        if together is not None:
            return self._formed(together[0], self._values(together[1]), [])
        head, form, bits = node[0], _LANES.get(node[0]), _BITS.get(node[0])
        if form is None and bits is None:
            return self._vector(node)
        values = self._values(node[1:])
        if form is None:
            types = {self._types.get(one.removesuffix(SEEN), "u4")[1] for one in values}
            dtype = "u8" if types == {"8"} else "u4"
            form = _Form(dtype, bits or "", dtype)
        count = 1 if "sh" in head else len(values)  # the others are numbers
        return self._formed(form, values[:count], values[count:])

    def _formed(self, form: _Form, vectors: list[str], numbers: list[str]) -> str:
        given = [self._as(one, form.of) for one in vectors]
        made = form.text.format(*given, *numbers)
        self._types[made] = form.to
        return self._seen(made)

    def _seen(self, made: str) -> str:
        """Return a vector as words."""
        return made if self._types.get(made, "u4") == "u4" else made + SEEN

    def _as(self, value: str, dtype: str) -> str:
        """Return a vector with lanes of a type."""
        made = value.removesuffix(SEEN)
        return made if self._types.get(made, "u4") == dtype else f"{made}.view({dtype})"

    def _choice(self, node: Any) -> str:
        *parts, (_, *then), (_, *other) = node[2:]
        [condition] = self._values(parts)
        start = len(self._lines)
        taken = self._temporary()
        self._write(f"if {condition}:")
        middle = len(self._lines)
        first = self._inner(lambda: self._values(then)[0])
        between = len(self._lines)
        self._depth += 1
        self._write(f"{taken} = {first}")
        self._depth -= 1
        self._write("else:")
        behind = len(self._lines)
        second = self._inner(lambda: self._values(other)[0])
        if between == middle and behind == len(self._lines):
            del self._lines[start:]
            return f"({first} if {condition} else {second})"
        self._depth += 1
        self._write(f"{taken} = {second}")
        self._depth -= 1
        return taken

    def _constant(self, node: Any) -> str:
        kind = node[0][:-6]
        if kind in ("i32", "i64"):
            return str(int(node[1], 0) & (1 << int(kind[1:])) - 1)
        if kind in ("f32", "f64"):
            value = float.fromhex(node[1]) if "0x" in node[1] else float(node[1])
            text = f"float{kind[1:]}({value!r})"
        else:
            bits = 32 if node[1] == "i32x4" else 64
            assert node[1] in ("i32x4", "i64x2"), node
            whole = sum(
                (int(one, 0) & (1 << bits) - 1) << bits * k for k, one in enumerate(node[2:])
            )
            words = [whole >> 32 * k & 0xFFFFFFFF for k in range(4)]
            text = f"array({words}, uint32)"
        return self._constants.setdefault(text, _constant_name(text))

    def _address(self, nodes: Any, offset: int) -> tuple[str, list[str]]:
        """Return an address and the values behind it."""
        address, *others = self._values(nodes)
        if address.isdigit():
            return str(int(address) + offset), others
        return (f"{address} + {offset}" if offset else address), others

    def _load(self, node: Any) -> str:
        head, offset, rest = _access(node)
        if head == "v128.load":
            wide = self._wide_address(rest[0])
            if wide is not None:
                return f"wide_load({wide[0]} + {offset}, {wide[1]})"
            return f"load({self._address(rest, offset)[0]})"
        if head.startswith("v128.load32_lane"):
            address, [vector] = self._address(rest[1:], offset)
            return f"load32_lane({address}, {vector}, {rest[0]})"
        if head.startswith("v128."):
            return f"{head[5:]}({self._address(rest, offset)[0]})"
        address, _ = self._address(rest, offset)
        found = _ACCESS.match(head)
        assert found is not None, node
        letter, bits, _, narrow, sign = found.groups()
        size = int(narrow or bits) // 8
        if letter == "f":
            return f"float{bits}_of(load_u{size}(M, {address})[0])"
        if size == 1 and sign != "s":
            return f"M[{address}]"
        if sign == "s":
            return f"(load_s{size}(M, {address})[0] & {M32 if bits == '32' else M64})"
        return f"load_u{size}(M, {address})[0]"

    def _store(self, node: Any) -> None:
        head, offset, rest = _access(node)
        if head == "v128.store":
            wide = self._wide_address(rest[0])
            if wide is not None:
                [value] = self._values(rest[1:])
                self._write(f"wide_store({wide[0]} + {offset}, {wide[1]}, {value})")
                return
            address, [value] = self._address(rest, offset)
            moved = _MOVED.match(value)
            if moved is not None:
                value = f"M[{moved[1]} : {moved[1]} + 16]"
                self._write(f"M[{address} : {address} + 16] = {value}")
            else:
                self._write(f"store({address}, {value})")
            return
        if head == "v128.store32_lane":
            address, [vector] = self._address(rest[1:], offset)
            self._write(f"store_u4(M, {address}, int({vector}[{rest[0]}]))")
            return
        address, [value] = self._address(rest, offset)
        found = _ACCESS.match(head)
        assert found is not None, node
        letter, bits, _, narrow, _ = found.groups()
        size = int(narrow or bits) // 8
        if letter == "f":
            value = f"bits_of_float({value})"
        if narrow:
            value = f"{value} & {(1 << 8 * size) - 1}"
        if size == 1:
            self._write(f"M[{address}] = {value}")
        else:
            self._write(f"store_u{size}(M, {address}, {value})")

    def _vector(self, node: Any) -> str:
        """Return a call of an operation on vectors."""
        head, rest = node[0], node[1:]
        fixed = [one for one in rest if isinstance(one, str)]
        values = self._values([one for one in rest if not isinstance(one, str)])
        name = head.replace(".", "_")
        if head == "i8x16.shuffle":
            words = [int(one) // 4 for one in fixed[::4]]
            assert [4 * w + k for w in words for k in range(4)] == [int(one) for one in fixed]
            name, fixed = "shuffle", [f"({', '.join(map(str, words))})"]
        return f"{name}({', '.join([*values, *fixed])})"

    def _wide_address(self, node: Any) -> tuple[str, int] | None:
        """Return where all lanes of an access begin, and the step of four; None for an address."""
        if node[0] == "local.get" and node[1] in self._wide:
            return local_of(node[1]), self._wide[node[1]]
        if node[0] == "i32.shl" and (inner := self._wide_address(node[1])):
            times = 1 << int(node[2][1])
            return f"{inner[0]} * {times}", inner[1] * times
        return None


def _together(node: Any) -> tuple[_Form, list[Any]] | None:
    """Return a scalar function of each lane as one of vectors, with these; None without one."""
    lanes: list[Any] = []
    while node[0].endswith(".replace_lane"):
        lanes.insert(0, node[3])
        node = node[2]
    if not (lanes and node[0].endswith(".splat")):
        return None
    first = node[1]
    operation = first[1] if first[0] == "call" else first[0]
    form, given = _TOGETHER.get(operation), first[2 if first[0] == "call" else 1 :]
    if form is None or not all("extract_lane" in one[0] for one in given):
        return None
    for number, lane in enumerate(lanes, 1):
        mine = [[one[0], str(number), one[2]] for one in given]
        if lane != [*first[: -len(given)], *mine]:
            return None
    return form, [one[2] for one in given]


def _is_fixed(value: str) -> bool:
    return value.isdigit() or value.startswith(("K", "_t"))


def _access(node: Any) -> tuple[str, int, Any]:
    """Return the instruction of an access, its offset, and its operands."""
    offset, rest = 0, []
    for one in node[1:]:
        if isinstance(one, str) and one.startswith("offset="):
            offset = int(one[7:])
        elif not (isinstance(one, str) and one.startswith("align=")):
            rest.append(one)
    return node[0], offset, rest


def _constant_name(text: str) -> str:
    """Return the name of a constant: the same one in every module."""
    return "K_" + _WORD.sub("_", text.replace("-", "m").replace(".", "p").replace("+", "a"))
