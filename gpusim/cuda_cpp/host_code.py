"""The launches that the host code of a file makes: sizes, grids, blocks and arguments.

Its functions are followed as far as their values are constants: from `main`, then functions that
nothing calls, such as `solve(input, output, N)`. Parameters and conditions that are not known keep
their defaults: the first iteration of a loop, the command line without arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from gpusim.cuda_cpp import host_values
from gpusim.cuda_cpp.host import parsed
from gpusim.cuda_cpp.host_numbers import Number, Root, called, operation
from gpusim.cuda_cpp.host_values import (
    WHOLE,
    Dim3,
    HostArray,
    Pointer,
    array_sizes,
    bytes_of,
    converted,
    size_of,
    text_of,
    whole,
)
from gpusim.cuda_cpp.structures import structures
from gpusim.host.files import to_bytes

MOST_CALLS = 12  # within each other
MOST_STEPS = 20_000
OPEN, UNKNOWN_SIZE = "unknown", 1024  # of a number that nothing gives
_ALLOCATES = re.compile(r"cuda(Malloc(Managed|Host|Async)?|HostAlloc|MallocFromPoolAsync)")
_FLOATS = re.compile(rb"\d\.|\(\s*(?:float|double)\s*\)|\b(?:float|double)\s*[(>]")
_CASTS = re.compile(
    r"(?:static|reinterpret|const)_cast\s*<(.*)>|(?:std::)?(?:size_t|u?int\d+_t|int|unsigned|long)"
)
_LAUNCHES = re.compile(r"<<<|cudaLaunch(Cooperative)?Kernel\b")
_VECTORS = ("vector", "device_vector", "host_vector", "universal_vector")


@dataclass(frozen=True)
class KernelName:
    """A kernel, with the template arguments that are written."""

    name: str
    template: tuple[Number | str, ...] = ()


@dataclass(frozen=True)
class HostLaunch:
    """A launch in host code; arguments that are not known are None.

    `constants` are the values of the source's constants, the same for all launches.
    """

    kernel: KernelName
    grid: Dim3
    block: Dim3
    shared: Number | None
    arguments: tuple[Any, ...]
    line: int
    constants: Mapping[Root, Fraction] = field(default_factory=dict, repr=False)

    @property
    def known(self) -> int:
        """How many of the arguments are known."""
        return sum(_is_known(one) for one in self.arguments)


def _is_known(one: Any) -> bool:
    is_sized = isinstance(one, Pointer) and one.bytes is not None
    return is_sized or isinstance(one, Number | HostArray | float)


def launches(
    text: str, file: str, kernels: Sequence[str], names: Mapping[Root, str] | None = None
) -> list[HostLaunch]:
    """Return the launches of some kernels; `names` are texts for constants of the source."""
    if not _LAUNCHES.search(text):
        return []
    return _Host(text, file, frozenset(kernels), names or {}).all()


class _Return(Exception):
    """A function returns a value."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Host:
    """Follows host code, and keeps the launches that it comes to."""

    def __init__(
        self, text: str, file: str, kernels: frozenset[str], names: Mapping[Root, str]
    ) -> None:
        self.structures = structures(text)
        self._kernels, self._names = kernels, names
        self._functions: dict[str, Any] = {}
        self._templates: dict[str, list[str]] = {}
        self._macros: dict[str, tuple[list[str], str]] = {}
        self._globals: dict[str, Any] = {}
        self._found: list[HostLaunch] = []
        self._constants: dict[Root, Fraction] = {}
        self._called: set[str] = set()
        self._depth = self._steps = 0
        self._block: Any = None  # of the launch that is read
        self._declare(parsed(to_bytes(text), file))

    def all(self) -> list[HostLaunch]:
        """Return the launches, those of `main` first."""
        for name in sorted(self._functions, key=lambda name: name != "main"):
            has_launch = _LAUNCHES.search(text_of(self._functions[name]))
            if name == "main" or (name not in self._called and has_launch):
                self._call(name, None, [])
        return self._found

    # -- declarations of the file

    def _declare(self, node: Any, template: Any = None) -> None:
        for child in node.children:
            kind = child.type
            if kind == "function_definition":
                self._define(child, template)
            elif kind == "template_declaration":
                self._declare(child, child.child_by_field_name("parameters"))
            elif kind == "preproc_def":
                name, value = (child.child_by_field_name(one) for one in ("name", "value"))
                self._macros[text_of(name)] = [], "" if value is None else text_of(value)
            elif kind == "preproc_function_def":
                name, value, given = (
                    child.child_by_field_name(one) for one in ("name", "value", "parameters")
                )
                words = [text_of(one) for one in given.named_children]
                self._macros[text_of(name)] = words, "" if value is None else text_of(value)
            elif kind in ("alias_declaration", "type_definition"):
                self._alias(child, self._globals)
            elif kind == "declaration" and b"__shared__" not in child.text:
                self._declaration(child, self._globals)
            elif child.child_count and (kind.startswith("preproc") or "declaration_list" in kind
                                        or "namespace" in kind or "linkage" in kind):  # fmt: skip
                self._declare(child)

    def _alias(self, node: Any, env: dict[str, Any]) -> None:
        """Keep another name of a type, by `using` or by `typedef`."""
        name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
        meant = text_of(node.child_by_field_name("type"))
        env[text_of(name)] = env.get(meant, meant)

    def _define(self, node: Any, template: Any) -> None:
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator")
        if declarator is None or b"__global__" in node.text.partition(b"{")[0]:
            return
        name = text_of(declarator.child_by_field_name("declarator"))
        self._functions[name] = node
        if template is not None:
            self._templates[name] = [_last_name(one) for one in template.named_children]

    # -- functions

    def _call(self, name: str, given: list[Any] | None, template: list[Any]) -> Any:
        if self._depth >= MOST_CALLS:
            return None
        self._called.add(name)
        node = self._functions[name]
        env = dict(zip(self._templates.get(name, ()), template, strict=False))
        for number, one in enumerate(_parameters(node)):
            key, ctype = _last_name(one), text_of(one)
            value = given[number] if given is not None and number < len(given) else None
            env[key] = value if value is not None else self._unknown(key, ctype)
        self._depth += 1
        try:
            self._run(node.child_by_field_name("body"), env)
        except _Return as found:
            return found.value
        finally:
            self._depth -= 1
        return None

    def _unknown(self, name: str, ctype: str) -> Any:
        """Return a parameter or variable that nothing gives a value."""
        if name == "argc":
            return Number.of(1)
        if "*" in ctype or "[" in ctype:
            return Pointer(ctype)
        if WHOLE.search(ctype) and not re.search(r"\b(?:float|double|std::|char)\b", ctype):
            return self._named(Number.of(UNKNOWN_SIZE, root=(OPEN, name)))
        return None

    def _named(self, number: Number) -> Number:
        if number.root is None:
            return number
        self._constants[number.root] = number.value
        text = self._names.get(number.root, "")
        return replace(number, text=text) if text else number

    # -- statements

    def _run(self, node: Any, env: dict[str, Any]) -> None:
        if node is None:
            return
        self._steps += 1
        if self._steps > MOST_STEPS:
            return
        kind = node.type
        if kind == "declaration":
            self._declaration(node, env)
        elif kind in ("alias_declaration", "type_definition"):
            self._alias(node, env)
        elif kind == "return_statement":
            raise _Return(self.value(_only(node), env))
        elif kind == "if_statement":
            self._if(node, env)
        elif kind == "switch_statement":
            self._switch(node, env)
        elif kind == "for_statement":
            self._for(node, env)
        elif kind in ("preproc_ifdef", "preproc_if"):
            self._conditional_text(node, env)
        elif kind == "expression_statement":
            self.value(_only(node), env)
        else:
            for child in node.named_children:
                if child.type.endswith("expression"):
                    self.value(child, env)
                else:
                    self._run(child, env)

    def _if(self, node: Any, env: dict[str, Any]) -> None:
        condition = self.value(node.child_by_field_name("condition"), env)
        parts = [node.child_by_field_name(one) for one in ("consequence", "alternative")]
        if isinstance(condition, Number):
            self._run(parts[0 if condition.value else 1], env)
            return
        for part in parts:
            try:
                self._run(part, env)
            except _Return:
                continue  # an exit after an error

    def _for(self, node: Any, env: dict[str, Any]) -> None:
        """Follow the first iteration of a loop, and then its increment."""
        update = node.child_by_field_name("update")
        for child in [one for one in node.named_children if one != update]:
            (self.value if child.type.endswith("expression") else self._run)(child, env)
        self.value(update, env)

    def _switch(self, node: Any, env: dict[str, Any]) -> None:
        """Follow the case of a known value, else each one."""
        value = self.value(node.child_by_field_name("condition"), env)
        is_known = isinstance(value, Number) and (value.root or (None,))[0] != OPEN
        for case in node.child_by_field_name("body").named_children:
            label = case.child_by_field_name("value")
            found = None if label is None else self.value(label, env)
            if is_known and not (isinstance(found, Number) and found.value == value.value):
                continue
            try:
                for child in case.named_children[label is not None :]:
                    self._run(child, env)
            except _Return:
                if is_known:
                    raise

    def _conditional_text(self, node: Any, env: dict[str, Any]) -> None:
        name = node.child_by_field_name("name")
        alternative = node.child_by_field_name("alternative")
        is_on = name is not None and (text_of(name) in self._macros) != (
            node.children[0].type == "#ifndef"
        )
        for child in node.named_children if is_on or alternative is None else [alternative]:
            if child not in (name, alternative):
                self._run(child, env)

    def _declaration(self, node: Any, env: dict[str, Any]) -> None:
        ctype = text_of(node.child_by_field_name("type") or node)
        for one in node.children_by_field_name("declarator"):
            self._declare_one(one, ctype, env)

    def _declare_one(self, node: Any, ctype: str, env: dict[str, Any]) -> None:
        value = node.child_by_field_name("value")
        inner = node.child_by_field_name("declarator") if node.type == "init_declarator" else node
        name = _last_name(inner)
        if ctype in ("dim3", "uint3"):
            env[name] = self._dim3(value if value is not None else inner, env)
        elif ctype.rpartition("::")[2].partition("<")[0] in _VECTORS:
            env[name] = self._vector(ctype, value if value is not None else inner, env)
        elif value is not None and value.type == "initializer_list" and ctype == "void":
            env[name] = [self.value(one, env) for one in value.named_children]
        elif inner.type == "array_declarator":
            sizes = [self.value(one, env) for one in array_sizes(inner)]
            env[name] = Pointer(ctype, bytes_of(sizes, ctype, self.structures))
        elif inner.type == "pointer_declarator" or "*" in ctype:
            made = self.value(value, env)
            env[name] = made if isinstance(made, Pointer | KernelName) else Pointer(ctype)
            if isinstance(env[name], Pointer) and not env[name].ctype:
                env[name].ctype = ctype
        else:
            made = self.value(value, env)
            if isinstance(made, Number) and WHOLE.search(ctype) and ctype != "auto":
                made = whole(made)
            env[name] = made if made is not None else self._unknown(name, ctype)

    def _vector(self, ctype: str, node: Any, env: dict[str, Any]) -> Pointer:
        base = ctype.partition("<")[2].rpartition(">")[0]
        given = [self.value(one, env) for one in _given(node)]
        return Pointer(base, bytes_of(given[:1], base, self.structures) if given else None)

    def _dim3(self, node: Any, env: dict[str, Any]) -> Any:
        if node is not None and node.type not in _LISTS and node.type != "function_declarator":
            made = self.value(node, env)
            return made if isinstance(made, Dim3) else Dim3(made) if _number(made) else None
        given = [self.value(one, env) for one in _given(node)]
        if not given or not all(isinstance(one, Number) for one in given):
            return Dim3(Number.of(1)) if not given else None
        return Dim3(*given[:3])

    # -- expressions

    def value(self, node: Any, env: dict[str, Any]) -> Any:
        """Return the value of an expression, None for an unknown one."""
        if node is None:
            return None
        found = _VALUES.get(node.type)
        made = found(self, node, env) if found is not None else self._inside(node, env)
        if isinstance(made, Number) and made.is_literal:
            made = self._named(replace(made, root=self._root(node)))
        return made

    def _root(self, node: Any) -> Root:
        """Return a literal as a constant: the block's for an equal divisor or template argument."""
        block, parent = self._block, node.parent
        if block is not None and node.text == block.text and parent is not None:
            is_divisor = parent.type == "binary_expression" and parent.children[1].type == "/"
            if parent.type == "template_argument_list" or is_divisor:
                node = block
        return "at", node.start_byte, node.end_byte, node.text

    def _inside(self, node: Any, env: dict[str, Any]) -> Any:
        """Return the value of an expression's only part; None if it has several."""
        values = [self.value(one, env) for one in node.named_children]
        return values[0] if len(values) == 1 else None

    def _identifier(self, node: Any, env: dict[str, Any]) -> Any:
        name, last = text_of(node), node.child_by_field_name("name")
        if last is not None and last.type != "identifier":
            return self.value(last, env)
        for held in (env, self._globals):
            if name in held:
                found = held[name]
                return found.copied() if isinstance(found, Number) else found
        if name in self._macros and not self._macros[name][0]:
            return self._of_text(self._macros[name][1], env, name)
        if name.rpartition("::")[2] in self._kernels:
            return KernelName(name.rpartition("::")[2])
        return {"true": Number.of(1), "false": Number.of(0)}.get(name)

    def _of_text(self, text: str, env: dict[str, Any], name: str) -> Any:
        """Return the value of a macro's text."""
        if self._depth >= MOST_CALLS or not text:
            return None
        self._depth += 1
        try:
            root = parsed(to_bytes(f"auto made = {text};"), name)
            found = next((one for one in _walk(root) if one.type == "init_declarator"), None)
            made = None if found is None else self.value(found.child_by_field_name("value"), env)
        finally:
            self._depth -= 1
        if isinstance(made, Number) and made.root is not None:
            return self._named(replace(made.copied(), root=("macro", name)))
        return made

    def _size_of(self, node: Any, env: dict[str, Any]) -> Any:
        kind, value = (node.child_by_field_name(one) for one in ("type", "value"))
        text = text_of(kind if kind is not None else value).strip("() ")
        if text in self._macros and not self._macros[text][0]:
            text = self._macros[text][1].strip()
        held = env.get(text, self._globals.get(text))
        if isinstance(held, Pointer) and held.bytes is not None:
            return held.bytes
        base = text.partition("[")[0].lstrip("*").strip()
        held = env.get(base, self._globals.get(base))
        ctype = held.ctype if isinstance(held, Pointer) else held if isinstance(held, str) else text
        return Number.of(size_of(ctype, self.structures))

    def _template(self, node: Any, env: dict[str, Any]) -> Any:
        name = text_of(node.child_by_field_name("name")).rpartition("::")[2]
        if name not in self._kernels:
            if name in self._functions and name not in self._called:
                self._call(name, None, self._template_arguments(node, env))  # a function's address
            return None
        return KernelName(name, tuple(self._template_arguments(node, env)))

    def _template_arguments(self, node: Any, env: dict[str, Any]) -> list[Number | str]:
        made: list[Number | str] = []
        for one in node.child_by_field_name("arguments").named_children:
            name = text_of(one)
            found = env.get(name, self._globals.get(name))
            if found is None and one.type == "type_descriptor" and name in self._macros:
                found = self._of_text(self._macros[name][1], env, name)
            if found is None and one.type != "type_descriptor":
                found = self.value(one, env)
            made.append(found if isinstance(found, Number | str) else name)
        return made

    def _lambda(self, node: Any, env: dict[str, Any]) -> None:
        """Follow a lambda where it stands, as one that is called at once."""
        try:
            self._run(node.child_by_field_name("body"), env)
        except _Return:
            return

    def _called_function(self, node: Any, env: dict[str, Any]) -> Any:
        function = node.child_by_field_name("function")
        syntax = next((one for one in node.children if one.type == "kernel_call_syntax"), None)
        arguments = node.child_by_field_name("arguments")
        if syntax is not None:
            return self._launch(node, function, syntax, arguments, env)
        given = [self.value(one, env) for one in _given(arguments)]
        name = text_of(function)
        if function.type == "field_expression":
            return self.value(function, env)
        if cast := _CASTS.fullmatch(name):
            return converted(given[0] if len(given) == 1 else None, cast[1] or name)
        if name in ("dim3", "make_uint3"):
            return self._dim3(arguments, env)
        if name in self._macros and self._macros[name][0]:
            words, text = self._macros[name]
            return self._of_text(text, {**env, **dict(zip(words, given, strict=False))}, name)
        plain = name.partition("<")[0].rpartition("::")[2]
        if plain in self._functions:
            last = function.child_by_field_name("name") or function
            made = next((one for one in (function, last) if one.type == "template_function"), None)
            template = [] if made is None else self._template_arguments(made, env)
            return self._call(plain, given, template)
        return self._library(name, given, node.start_point[0] + 1)

    def _library(self, name: str, given: list[Any], line: int) -> Any:
        if name in ("cudaLaunchKernel", "cudaLaunchCooperativeKernel"):
            if len(given) > 3 and isinstance(given[3], list):
                shared = given[4] if len(given) > 4 else None
                self._keep(given[0], given[1], given[2], shared, given[3], line)
            return None
        return _of_library(name, given)

    def _launch(self, node: Any, function: Any, syntax: Any, arguments: Any,
                env: dict[str, Any]) -> None:  # fmt: skip
        sizes = syntax.named_children
        self._block = sizes[1] if len(sizes) > 1 else None
        kernel = self.value(function, env)
        configuration = [self.value(one, env) for one in sizes]
        self._block = None
        given = [self.value(one, env) for one in _given(arguments)]
        line = node.start_point[0] + 1
        grid, block, shared, *_ = [*configuration, None, None, None]
        self._keep(kernel, grid, block, shared, given, line)

    def _keep(self, kernel: Any, grid: Any, block: Any, shared: Any, given: list[Any],
              line: int) -> None:  # fmt: skip
        """Keep a launch with a known grid and block."""
        if not isinstance(kernel, KernelName):
            return
        shapes = [one if isinstance(one, Dim3) else Dim3(one) if _number(one) else None
                  for one in (grid, block)]  # fmt: skip
        held = shared if isinstance(shared, Number) and shared.value else None
        if shapes[0] is not None and shapes[1] is not None:
            now = tuple(replace(o) if isinstance(o, Pointer) else o for o in given)
            self._found.append(
                HostLaunch(kernel, shapes[0], shapes[1], held, now, line, self._constants)
            )


def _of_library(name: str, given: Sequence[Any]) -> Any:
    """Return what a function of CUDA's or C's library returns; its arrays have their bytes."""
    if _ALLOCATES.fullmatch(name) and len(given) > 1:
        if isinstance(given[0], Pointer) and isinstance(given[1], Number):
            given[0].bytes = given[1]
        return None
    if name == "cudaMallocPitch" and len(given) > 3 and isinstance(given[0], Pointer):
        numbers = [one for one in given[2:4] if isinstance(one, Number)]
        if len(numbers) == 2:
            given[0].bytes = operation("*", *numbers, is_whole=True)
        return None
    if name == "cudaHostGetDevicePointer" and len(given) > 1:
        if isinstance(given[0], Pointer) and isinstance(given[1], Pointer):
            given[0].bytes = given[1].bytes
        return None
    if name in ("malloc", "calloc", "aligned_alloc"):
        sizes = given[-2:] if name == "calloc" else given[-1:]
        return Pointer("", bytes_of(sizes, "char", {}))
    numbers = [one for one in given if isinstance(one, Number)]
    if len(numbers) == len(given) and (made := called(name, numbers)) is not None:
        return made
    pointers = [one for one in given if isinstance(one, Pointer)]
    return pointers[0] if len(pointers) == len(given) == 1 else None


def _number(value: Any) -> bool:
    return isinstance(value, Number)


_LISTS = ("argument_list", "initializer_list")
_VALUES: Mapping[str, Any] = {
    "number_literal": host_values.literal,
    "identifier": _Host._identifier,
    "qualified_identifier": _Host._identifier,
    "type_identifier": _Host._identifier,
    "true": _Host._identifier,
    "false": _Host._identifier,
    "binary_expression": host_values.binary,
    "assignment_expression": host_values.assignment,
    "update_expression": host_values.update,
    "field_expression": host_values.member,
    "unary_expression": host_values.unary,
    "pointer_expression": host_values.unary,
    "cast_expression": host_values.cast,
    "conditional_expression": host_values.condition,
    "sizeof_expression": _Host._size_of,
    "subscript_expression": host_values.subscript,
    "new_expression": host_values.new,
    "lambda_expression": _Host._lambda,
    "template_function": _Host._template,
    "call_expression": _Host._called_function,
    "initializer_list": _Host._dim3,
}


def _only(node: Any) -> Any:
    return node.named_children[0] if node.named_children else None


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for child in node.children:
        yield from _walk(child)


def _given(node: Any) -> list[Any]:
    """Return the arguments of a list; of one that reads as a function's parameters, their names."""
    if node is None:
        return []
    if node.type == "function_declarator":
        inner = node.child_by_field_name("parameters").named_children
        return [one.named_children[0] if one.named_children else one for one in inner]
    return [one for one in node.named_children if one.type != "comment"]


def _parameters(node: Any) -> list[Any]:
    declarator = node.child_by_field_name("declarator")
    while declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    found = declarator.child_by_field_name("parameters").named_children
    return [one for one in found if "parameter" in one.type]


def _last_name(node: Any) -> str:
    """Return the name that a declarator declares."""
    names = [one for one in _walk(node) if one.type in ("identifier", "type_identifier")]
    declarator = node.child_by_field_name("declarator")
    if declarator is not None:
        return _last_name(declarator)
    return text_of(names[-1] if names else node).lstrip("*& ")
