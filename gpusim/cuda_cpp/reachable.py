"""Device code by reachability: of a file and its headers the declarations that kernels use.

The second attempt at a text that does not compile with host code cut out by its kind alone
(`host.py`): host classes, variables and headers' functions that no kernel mentions are cut too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpusim.cuda_cpp.host import (
    DEVICE,
    GROUPS,
    blanked,
    device_macros,
    is_made_by,
    parsed,
    without_host_macros,
)
from gpusim.host.files import to_bytes

_WORD = re.compile(rb"[A-Za-z_]\w*")
_QUOTED = re.compile(rb'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_DIRECTIVE = re.compile(
    rb"(?P<directive>^[ \t]*#(?:[^\n\\]|\\.)*)|" + _QUOTED.pattern, re.MULTILINE | re.DOTALL
)
_INSIDE = re.compile(rb"\{[^{}]*\}|\([^()]*\)|<[^<>]*>")
_ENUMERATION = re.compile(rb"\benum\b")
_VALUES = re.compile(rb"=[^,;]*")
_ROOT = re.compile(rb"\b(?:__global__|__device__|__constant__|__managed__)\b")
_CONSTANT = re.compile(rb"\bconst(?:expr)?\b|^\s*(?:enum|struct|class|union)\b")
_KERNEL = re.compile(rb"\b__global__\b")
_DECLARATIONS = (
    "function_definition", "declaration", "template_declaration", "template_instantiation",
    "struct_specifier", "class_specifier", "union_specifier", "enum_specifier",
    "alias_declaration", "type_definition", "using_declaration", "static_assert_declaration",
    "expression_statement", "ERROR",
)  # fmt: skip
_MACROS = ("preproc_def", "preproc_function_def")
_CLASSES = ("struct_specifier", "class_specifier", "union_specifier")
_FUNCTIONS = ("function_declarator", "operator_cast")
_NAMED = ("identifier", "field_identifier", "type_identifier", "operator_name", "destructor_name")
_KEPT_METHODS = ("default_method_clause", "delete_method_clause")
_KEYWORDS = frozenset(
    b"""alignas auto bool char class const constexpr decltype default delete double enum explicit
    extern false final float for friend inline int long mutable namespace noexcept nullptr operator
    override private protected public return short signed sizeof static static_assert struct
    template this true typedef typename uint union unsigned using virtual void volatile while
    size_t float2 float3 float4 int2 int3 int4 std __align__ __attribute__ __constant__ __device__
    __forceinline__ __global__ __host__ __inline__ __launch_bounds__ __managed__ __restrict__
    __shared__""".split()
)
_HOST_NAMESPACE = re.compile(rb"using\s+(?:namespace\s+)?(?:std|at|torch|cv|pybind11)\b")


@dataclass(frozen=True, eq=False)
class Declaration:
    """A declaration at the top of a file or namespace: its names, and all words in it."""

    file: str
    begin: int
    end: int
    names: frozenset[bytes]
    words: frozenset[bytes]
    is_root: bool  # a kernel, or anything else in device memory or code
    is_kernel: bool
    host_parts: tuple[tuple[int, int], ...]  # within it: methods of a class for the host


def device_texts(texts: Mapping[str, str], kernel: str | None) -> dict[str, str]:
    """Return texts of files, by path, without the declarations that device code does not reach.

    It begins with a kernel and the types of its instance, or with all device code for None.
    """
    sources = {path: without_host_macros(to_bytes(text)) for path, text in texts.items()}
    declared: list[Declaration] = []
    macros: dict[bytes, frozenset[bytes]] = {}
    made = frozenset().union(*map(device_macros, sources.values()))
    for path, source in sources.items():
        root = parsed(source, path)
        declared += _declarations(root, path, source, made)
        for name, words in _macros(root, source):
            macros[name] = macros.get(name, frozenset()) | words
    reached = _reached(declared, macros, _first(declared, kernel))
    used = {one.file for one in reached}
    cuts: dict[str, list[tuple[int, int]]] = {
        path: [] if path in used else _between_directives(source)
        for path, source in sources.items()
    }
    for one in declared:
        parts = one.host_parts if one in reached else ((one.begin, one.end),)
        cuts[one.file].extend(parts)
    return {
        path: blanked(source, cuts[path]).decode(errors="surrogateescape")
        for path, source in sources.items()
    }


def _between_directives(source: bytes) -> list[tuple[int, int]]:
    """Return all of a text but the directives of the preprocessor."""
    found = [one.span() for one in _DIRECTIVE.finditer(source) if one["directive"]]
    places = [0, *(place for span in found for place in span), len(source)]
    return list(zip(places[::2], places[1::2], strict=True))


def _first(declared: Sequence[Declaration], kernel: str | None) -> list[Declaration]:
    if kernel is None:
        return [one for one in declared if one.is_root]
    asked = frozenset(_WORD.findall(kernel.encode()))
    name = kernel.partition("(")[0].partition("<")[0]
    plain = name.rpartition("::")[2].strip().encode()
    return [
        one
        for one in declared
        if (one.is_kernel and plain in one.names) or (not one.is_kernel and one.names & asked)
    ]


def _reached(
    declared: Sequence[Declaration],
    macros: Mapping[bytes, frozenset[bytes]],
    first: Sequence[Declaration],
) -> set[Declaration]:
    """Return the declarations that some lead to by the words in them, through macros too."""
    by_name: dict[bytes, list[Declaration]] = {}
    for one in declared:
        for name in one.names:
            by_name.setdefault(name, []).append(one)
    reached, seen, waiting = set(first), set[bytes](), [one.words for one in first]
    while waiting:
        for word in waiting.pop() - seen:
            seen.add(word)
            waiting += [macros[word]] if word in macros else []
            for one in by_name.get(word, ()):
                if one not in reached:
                    reached.add(one)
                    waiting.append(one.words)
    return reached


def _declarations(
    node: Any, path: str, source: bytes, made: Collection[bytes]
) -> Iterator[Declaration]:
    """Yield the declarations of a file; what the grammar does not read goes with the next one."""
    begin: int | None = None
    for child in node.children:
        body = source[child.start_byte : child.end_byte]
        if child.type == "linkage_specification" and child.children[-1].type in _DECLARATIONS:
            yield from _declaration(child.children[-1], path, source, made, child.start_byte)
        elif child.type in GROUPS or _is_group_of_host(child, body):
            yield from _declarations(child, path, source, made)
        elif child.type == "ERROR" and DEVICE.search(body) and begin is None:
            begin = child.start_byte
        elif child.type in _DECLARATIONS:
            yield from _declaration(child, path, source, made, begin)
            begin = None


def _is_group_of_host(node: Any, body: bytes) -> bool:
    """Return whether the grammar reads no part of device code wrongly, but much of a header."""
    is_large = any(child.type in GROUPS for child in node.children)
    return node.type == "ERROR" and is_large and not DEVICE.search(body)


def _declaration(
    node: Any, path: str, source: bytes, made: Collection[bytes], begin: int | None
) -> Iterator[Declaration]:
    start = node.start_byte if begin is None else begin
    body = _QUOTED.sub(b" ", source[start : node.end_byte])
    if node.type == "using_declaration" and not _HOST_NAMESPACE.match(body):
        return
    inner = _class_of(node)
    head = body.partition(b"{")[0]
    is_made = is_made_by(body, made)
    is_of_host = not is_made and _is_of_host(node, inner, head)
    names = frozenset[bytes]() if is_of_host else _names(body, inner)
    yield Declaration(
        path, start, node.end_byte, names, frozenset(_WORD.findall(body)),
        is_made or _ROOT.search(body) is not None,
        is_made or _KERNEL.search(head) is not None,
        tuple(_host_methods(inner, source)) if inner is not None else (),
    )  # fmt: skip


def _is_of_host(node: Any, inner: Any | None, head: bytes) -> bool:
    """Return whether device code cannot use it: host functions, variables that are not const."""
    if node.type == "using_declaration":
        return True
    if inner is not None or DEVICE.search(head):
        return False
    return _is_function(node) or (node.type == "declaration" and not _CONSTANT.search(head))


def _names(body: bytes, inner: Any | None) -> frozenset[bytes]:
    """Return the names that a declaration may introduce: words outside of brackets and values."""
    plain = body
    if not _ENUMERATION.search(body):
        while (outer := _INSIDE.sub(b" ", plain)) != plain:
            plain = outer
        plain = plain if inner is not None else _VALUES.sub(b" ", plain)
    return frozenset(_WORD.findall(plain)) - _KEYWORDS


def _is_function(node: Any) -> bool:
    if node.type == "template_declaration":
        return any(_is_function(child) for child in node.children)
    if node.type not in ("function_definition", "declaration", "template_instantiation"):
        return False
    return any(_is_declarator_of_function(child) for child in node.children)


def _is_declarator_of_function(node: Any) -> bool:
    if node.type in _FUNCTIONS:
        return True
    around = ("pointer_declarator", "reference_declarator", "init_declarator")
    return node.type in around and any(map(_is_declarator_of_function, node.children))


def _class_of(node: Any) -> Any | None:
    """Return the class that a declaration defines."""
    if node.type in _CLASSES:
        has_body = any(child.type == "field_declaration_list" for child in node.children)
        return node if has_body else None
    if node.type in ("template_declaration", "type_definition", "declaration"):
        return next(filter(None, map(_class_of, node.children)), None)
    return None


def _host_methods(node: Any, source: bytes) -> Iterator[tuple[int, int]]:
    """Yield the methods of a class without `__device__`; all stay where one is virtual."""
    if b"virtual" in source[node.start_byte : node.end_byte]:
        return
    for body in node.children:
        for member in body.children if body.type == "field_declaration_list" else ():
            inner = member if member.type in _CLASSES else _class_of(member)
            text = source[member.start_byte : member.end_byte]
            if inner is not None:
                yield from _host_methods(inner, source)
            elif _is_method(member) and not DEVICE.search(text.partition(b"{")[0]):
                yield member.start_byte, member.end_byte


def _is_method(member: Any) -> bool:
    if member.type in ("template_declaration", "friend_declaration"):
        return any(map(_is_method, member.children))
    if member.type not in ("function_definition", "field_declaration", "declaration"):
        return False
    if any(child.type in _KEPT_METHODS for child in member.children):
        return False
    return any(map(_is_declarator_of_function, member.children))


def _macros(node: Any, source: bytes) -> Iterator[tuple[bytes, frozenset[bytes]]]:
    """Yield each macro with the words of its text."""
    for child in node.children:
        if child.type in _MACROS:
            _, name, *words = _WORD.findall(source[child.start_byte : child.end_byte])
            yield name, frozenset(words)
        elif child.type in GROUPS:
            yield from _macros(child, source)
