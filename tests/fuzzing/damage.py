"""Ways in which a file comes to harm: bytes and lines, or the tree that a document is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

Damage = Callable[[Random, bytes], bytes]
Place = tuple[Any, Any]  # a container, and a key or an index of it


def flip_bits(random: Random, content: bytes) -> bytes:
    """Change a few bits."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 5)):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def cut(random: Random, content: bytes) -> bytes:
    """Leave out the end, the beginning or a piece in between."""
    first, last = sorted(random.choices(range(len(content) + 1), k=2))
    return random.choice([content[:first], content[last:], content[:first] + content[last:]])


def put_in(random: Random, content: bytes) -> bytes:
    """Put something odd in between."""
    place = random.randrange(len(content) + 1)
    odd = [b"\0", b"\n", b"\r", b"[" * 5000, b"9" * 5000, b"\xff", b"{", b'"', b"nan", "é".encode()]
    return content[:place] + random.choice(odd) + content[place:]


def stir_lines(random: Random, content: bytes) -> bytes:
    """Leave out, repeat and reorder lines."""
    lines = content.splitlines(keepends=True)
    for _ in range(random.randint(1, 4)):
        if lines:
            line = lines.pop(random.randrange(len(lines)))
            for _ in range(random.choice([0, 1, 2])):
                lines.insert(random.randrange(len(lines) + 1), line)
    return b"".join(lines)


def another_number(random: Random, content: bytes) -> bytes:
    """Write another number in place of one."""
    digits = [place for place, byte in enumerate(content) if chr(byte).isdigit()]
    if not digits:
        return content
    place = random.choice(digits)
    end = place
    while end < len(content) and chr(content[end]).isdigit():
        end += 1
    return content[:place] + random.choice(NUMBERS).encode() + content[end:]


NUMBERS = (
    "0", "1", "-1", "3", "7", "64", "1000", "65536", "2147483648", "4294967296", "1e9", "1e-9",
    "1e308", "1e400", "-1e400", "nan", "inf", "-0.0", "0.5", "1_000", "0x10", "9" * 19, "9" * 20,
    "9" * 400, "9" * 5000, "18446744073709551616", "1" + "0" * 310 + ".0",
)  # fmt: skip

DAMAGES: tuple[Damage, ...] = (flip_bits, cut, put_in, stir_lines, another_number)


def damaged(random: Random, content: bytes) -> bytes:
    """Return a file's bytes with one to three kinds of damage."""
    for damage in random.choices(DAMAGES, k=random.choice([1, 1, 1, 2, 3])):
        content = damage(random, content)
    return content


VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 32, 1024, 65536, 2**31, 2**63, 2**64, 10**400, 0.0, -0.0, 0.5,
    1e-300, 1e300, float("nan"), float("inf"), "", " ", "x", "é" * 3000, "\0", "a\nb", "\x1b[2J",
    [], [[]], [1, 2], {}, {"value": 1}, {"a": {"b": {"c": {}}}},
)  # fmt: skip


def stir_tree(random: Random, tree: Any) -> None:
    """Change, leave out, add or swap values of a document, in place."""
    for _ in range(random.choice([1, 1, 2, 5])):
        places = list(_places(tree))
        if not places:
            return
        container, key = random.choice(places)
        action = random.choice(["change", "change", "change", "drop", "add", "swap"])
        if action == "change":
            container[key] = random.choice(VALUES)
        elif action == "drop":
            del container[key]
        elif action == "add" and isinstance(container, list):
            container.insert(key, random.choice([*VALUES, container[key]]))
        elif action == "add":
            container[random.choice(["more", "", "value", "x" * 2000])] = random.choice(VALUES)
        else:
            other, place = random.choice(places)
            container[key], other[place] = other[place], container[key]


def _places(tree: Any) -> Iterator[Place]:
    """Yield every place of a tree that has a value; each value once."""
    seen: set[int] = set()
    left = [tree]
    while left:
        value = left.pop()
        if not isinstance(value, dict | list) or id(value) in seen:
            continue
        seen.add(id(value))
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            left.append(value[key])
