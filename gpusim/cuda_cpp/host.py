"""Device code alone: host code is cut out of a source file, lines kept.

A real grammar finds functions, variables and their parts; tree-sitter's parses CUDA C++
as it stands in files with `main` and `<<<...>>>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from gpusim.cuda_cpp.source_text import closings
from gpusim.errors import InputError
from gpusim.host.files import to_bytes
from gpusim.host.installation import install

_STD = r"(?<!cuda::)\bstd::"  # the standard library within cuda:: is the device's too
_HOST = re.compile(rf"<<<|\bmain\s*\(|\bcuda(Malloc|Memcpy|Free|Error_t|Event|Stream)\w*|{_STD}")
DEVICE = re.compile(
    rb"\b(__global__|__device__|__constant__|__shared__|__managed__|constexpr|consteval)\b"
)
_DEVICE_MACRO = re.compile(
    rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:[^\n\\]|\\\n)*__(?:global|device)__", re.MULTILINE
)
_MACRO = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)\((?:[^\n\\]|\\\r?\n|\\.)*", re.MULTILINE)
_VISIBLE = re.compile(rb"[^\r\n]")
_WORD = re.compile(rb"\w+")
_ALIGNED = re.compile(rb"\b__(?:builtin_)?align__\s*\([^()]*\)")  # missing in the grammar
GROUPS = (
    "namespace_definition", "linkage_specification", "declaration_list", "preproc_if",
    "preproc_ifdef", "preproc_else", "preproc_elif",
)  # fmt: skip
_FRAMEWORK = r"\b(?:torch|at|pybind11)::|\bPYBIND11_MODULE\b|\bTORCH_LIBRARY\w*\b"
_NOT_OF_DEVICES = re.compile(rf"{_STD}|\bcuda[A-Z]\w*|namespace\s+std\b|{_FRAMEWORK}".encode())
_HOST_MADE = re.compile(rb"<<<|\b(?:torch|at)::Tensor\b|\bPYBIND11_MODULE\b|\bTORCH_LIBRARY")
_ONLY_HOST = re.compile(_NOT_OF_DEVICES.pattern + rb"|\bdim3\b|\bprintf\b")
_LAMBDA = re.compile(r"(?<=\])\s*(?:__(?:host|device)__[^\S\n]*)+(?=[({]|mutable)")
_KEPT = (b"const ", b"extern ", b"static const ", b"struct ", b"class ", b"enum ", b"union ")


def device_code(text: str, file: str) -> str:
    """Return source without host code; InputError if the grammar does not parse it.

    Of text without host code, only the qualifiers of lambdas are cut out: NVRTC compiles for the
    device alone and rejects them.
    """
    text = _LAMBDA.sub(lambda match: " " * len(match[0]), text)
    if not _HOST.search(text):
        return text
    source = without_host_macros(to_bytes(text))
    nodes = _host_nodes(parsed(source, file), source, device_macros(source))
    return blanked(source, ((node.start_byte, node.end_byte) for node in nodes)).decode(
        errors="surrogateescape"
    )


def without_host_macros(source: bytes) -> bytes:
    """Return a source with host macros' calls outside of functions replaced by blanks.

    Without the preprocessor such a call is no declaration, and the grammar cannot parse it.
    """
    macros = {
        macro[1] for macro in _MACRO.finditer(source) if _HOST_MADE.search(macro[0])
    } - device_macros(source)
    if not macros:
        return source
    calls = re.compile(rb"^[ \t]*(?:%s)[ \t]*(?=\()" % b"|".join(sorted(macros)), re.MULTILINE)
    closing = closings(source.decode("latin-1"), "()")
    places = (
        (call.start(), closing[call.end()])
        for call in calls.finditer(source)
        if call.end() in closing
    )
    return blanked(source, places)


def parsed(source: bytes, file: str) -> Any:
    """Return the root of a source's syntax tree; InputError without the grammar."""
    try:
        import tree_sitter_cuda
        from tree_sitter import Language, Parser
    except ImportError:
        raise InputError(
            f"{file} has host code as well; separating it needs the extra nvcc: {install('nvcc')}"
        ) from None
    plain = _ALIGNED.sub(lambda match: b" " * len(match[0]), source)
    return Parser(Language(tree_sitter_cuda.language())).parse(plain).root_node


def blanked(source: bytes, parts: Iterable[tuple[int, int]]) -> bytes:
    """Return a source with blanks in place of parts; lines stay."""
    cut = bytearray(source)
    for begin, end in parts:
        cut[begin:end] = _VISIBLE.sub(b" ", cut[begin:end])
    return bytes(cut)


def device_macros(source: bytes) -> frozenset[bytes]:
    """Return the macros of a source that define kernels or device functions."""
    return frozenset(_DEVICE_MACRO.findall(source))


def is_made_by(body: bytes, macros: Collection[bytes]) -> bool:
    """Return whether a declaration calls one of these macros, or has one among its qualifiers."""
    return any(word in macros for word in _WORD.findall(body.partition(b"{")[0]))


def _host_nodes(node: Any, source: bytes, macros: Collection[bytes]) -> Iterator[Any]:
    """Yield the parts of a file that only the host needs; `macros` define kernels."""
    for child in node.children:
        body = source[child.start_byte : child.end_byte]
        if is_made_by(body, macros):
            continue
        if child.type in GROUPS:
            inside = list(_host_nodes(child, source, macros))
            # extern "C" before one function goes with it.
            is_alone = child.type == "linkage_specification" and child.children[-1] in inside
            yield from [child] if is_alone else inside
        elif _IS_HOST.get(child.type, _is_kept)(child, body):
            yield child


def _is_kept(child: Any, body: bytes) -> bool:
    return False


def _is_host_function(child: Any, body: bytes) -> bool:
    if child.type == "template_declaration" and _is_of_types(child):
        return _ONLY_HOST.search(body) is not None
    return not DEVICE.search(body.partition(b"{")[0])


def _is_of_types(child: Any) -> bool:
    kinds = ("struct_specifier", "class_specifier", "alias_declaration", "union_specifier")
    return any(part.type in kinds for part in child.children)


def _is_host_variable(child: Any, body: bytes) -> bool:
    if DEVICE.search(body):
        return False
    return _ONLY_HOST.search(body) is not None or not body.lstrip().startswith(_KEPT)


def _uses_host_library(child: Any, body: bytes) -> bool:
    words = _NOT_OF_DEVICES if DEVICE.search(body) else _ONLY_HOST
    return words.search(body) is not None


# By the grammar's names for nodes at the top of a file: whether only the host needs it.
_IS_HOST: Mapping[str, Callable[[Any, bytes], bool]] = {
    "function_definition": _is_host_function,
    "template_declaration": _is_host_function,
    "declaration": _is_host_variable,
    "expression_statement": lambda child, body: True,
    "alias_declaration": _uses_host_library,
    "type_definition": _uses_host_library,
    "using_declaration": _uses_host_library,
    "class_specifier": _uses_host_library,
    "struct_specifier": _uses_host_library,
    "ERROR": _uses_host_library,
}
