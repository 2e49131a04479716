"""Every key of a device file is read somewhere in gpusim: none is an option that does nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from source_trees import tree_of

import gpusim
from gpusim.gpu.device import GROUPS, KEYS, load
from validate.probes import PROBES

HOUSE = Path(gpusim.__file__).parent


def pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what an assignment puts where; two tuples are taken apart."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)  # a starred one is more
        else:
            yield target, node.value


def group_of(node: ast.expr, names: dict[str, str]) -> str:
    """Return the group of a device that an expression is, "" where it is none."""
    if isinstance(node, ast.Attribute):
        return node.attr if node.attr in GROUPS else names.get(node.attr, "")
    return names.get(node.id, "") if isinstance(node, ast.Name) else ""


def named(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield what names are given to groups, in assignments and annotations: name, group."""
    classes = {f"device.{cls.__name__}": group for group, cls in GROUPS.items()}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target, value in pairs(node):
                yield ast.unparse(target), group_of(value, {})
        elif isinstance(node, ast.AnnAssign):
            yield ast.unparse(node.target), classes.get(ast.unparse(node.annotation), "")


def keys_read(tree: ast.Module) -> Iterator[str]:
    """Yield keys that a module reads, of a group or of a name that it gives to one.

    Where it looks attributes of a group up by their names, its texts are such names.
    """
    nodes = list(ast.walk(tree))
    texts = [one.value for one in nodes if isinstance(one, ast.Constant)]
    yield from (text for text in texts if text in KEYS)
    names = {name: group for name, group in named(nodes) if group}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield f"{group_of(node.value, names)}.{node.attr}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            yield from (f"{group_of(node.args[0], names)}.{text}" for text in texts)


def test_every_key_is_read() -> None:
    read = {
        key
        for path in HOUSE.rglob("*.py")
        if path != HOUSE / "device.py"
        for key in keys_read(tree_of(path))
    }
    assert set(KEYS) - read == set()


def known(code: str) -> set[str]:
    return set(KEYS).intersection(keys_read(ast.parse(code)))


def test_a_key_that_only_looks_alike_is_not_read() -> None:
    code = "cycles, x = gpu.latency_cycles, gpu.sms\ncycles.l1 + gpu.capacity.l2_bytes + x.dram"
    assert known(code) == {"latency_cycles.l1", "capacity.l2_bytes"}
    assert known("caches: device.Capacity\nself.caches.l2_parts + caches.sms") == {
        "capacity.l2_parts"
    }
    code = "TABLE = ['alu', 'xu']\ngetattr(gpu.interval_cycles, TABLE[0])"
    assert known(code) == {"interval_cycles.alu", "interval_cycles.xu"}


def test_what_was_measured_on_the_h200_names_its_microbenchmark() -> None:
    """A probe measures each such key, and its source says that or how one was run on an H200."""
    benched = {key for probe in PROBES for key in probe.keys}
    measured = {key: fact for key, fact in load("h200").facts.items() if fact.kind == "measured"}
    assert set(measured) - benched == set()
    named = re.compile("(gpusim validate calibrate, NVIDIA|microbenchmark on an) H200, .+: .+")
    assert [key for key, fact in measured.items() if not named.search(fact.source)] == []
