"""Kernels that nvcc's compiler makes: of a `.cu` file, of source text, or of a cubin.

`cuda_file("kernels.cu")["reduce3"][grid, block](x, y, n)` is launched, traced and predicted as a
kernel of the dialect is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.cuda_cpp import host, nvcc_definitions, reachable, signature
from gpusim.cuda_cpp.aliases import aliases, of_template, resolved
from gpusim.cuda_cpp.embedded import cuda_of, cuda_of_notebook
from gpusim.cuda_cpp.example_instances import example_instance
from gpusim.cuda_cpp.host_numbers import Root
from gpusim.cuda_cpp.includes import includes, read
from gpusim.cuda_cpp.named_values import whole_numbers, with_values
from gpusim.cuda_cpp.signature import Declared, points_to_const
from gpusim.cuda_cpp.source_text import parts
from gpusim.cuda_cpp.structures import (
    POINTER_BYTES,
    TYPES,
    Structures,
    members,
    size_of,
    structures,
)
from gpusim.errors import InputError, shown_at_the_call
from gpusim.host import files
from gpusim.isa.lines import Call
from gpusim.isa.ops import CONSTANT_BANK, BankLayout, Program
from gpusim.launch.arguments import ArraySpec, NullPointer
from gpusim.launch.configured import MachineCode
from gpusim.launch.grid import NO_CLUSTER, ComputeCapability, Launch
from gpusim.launch.prepared import Prepared
from gpusim.sass import arguments, arrays, compiler, cubin, listing, symbols, variables, wheels
from gpusim.sass.arguments import Given
from gpusim.sass.bank_words import RESERVED, RESERVED_BYTES
from gpusim.sass.cache import Lookup
from gpusim.sass.compiler import Options
from gpusim.sass.initial_memory import InitialMemory, contents
from gpusim.sass.linking import linked
from gpusim.sass.missing_headers import left_out, with_folders_around
from gpusim.sass.ptx import ptx_of
from gpusim.sass.symbols import BUILTIN
from gpusim.sass.translate import Code, translate

MAX_CODE_BYTES = 2**28  # of a file: as long as the largest libraries of kernels

_KERNEL_MACRO = re.compile(r"^[ \t]*#[ \t]*define\b(?:[^\n]|\\\n)*__global__", re.MULTILINE)
_QUALIFIER = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|__grid_constant__)\b")
_ENUMERATION = re.compile(r"\benum\s+(?:class\s+|struct\s+)?(\w+)")
DEFAULT_ARCHITECTURE = "sm_90a"
POINTERS = np.ndarray | ArraySpec | NullPointer
GRID_BARRIER_WORDS = 8
KERNEL_BANK = 2


@dataclass(frozen=True)
class Source:
    """Where a kernel comes from, and its parameters' names."""

    file: str
    parameters: tuple[str, ...]


class CodeFile:
    """Machine code of all the kernels in a file, made when a GPU is named."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._variables: dict[str, Any] = {}

    def __getitem__(self, name: str) -> CodeKernel:
        return CodeKernel(self, name)

    @property
    def variables(self) -> Mapping[str, Any]:
        """Arrays for the file's `__device__` and `__constant__` variables, by name."""
        return self._variables

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the file's kernels."""
        raise NotImplementedError

    @shown_at_the_call
    def set(self, name: str, value: Any) -> None:
        """Set the value of a `__device__` or `__constant__` variable in later launches.

        Its name is that of C++, `space::name`. LaunchError where the file has no such variable, and
        for a value that does not fit.
        """
        known = self._known_variables()
        if known is not None:
            self.held(name, value, known)
        self._variables = {**self._variables, name: value}

    def held(
        self, name: str, value: Any, known: Mapping[str, cubin.Variable]
    ) -> tuple[cubin.Variable, np.ndarray[Any, Any]]:
        """Return the variable of a name, and its value."""
        one = variables.variable(name, known, self.file)
        return one, variables.held(name, one, self._type_of(one), value)

    def _known_variables(self) -> Mapping[str, cubin.Variable] | None:
        """Return the variables by their symbols, None where a launch is the first to know them."""
        return None

    def _type_of(self, one: cubin.Variable) -> str:
        """Return a variable's type, its elements' if it is an array; "" where nothing says it."""
        return ""

    @property
    def structures(self) -> Structures:
        """The members of the structures that the file defines, as far as they are known."""
        return {}

    @property
    def text(self) -> str:
        """The source, "" where it is not known."""
        return ""

    def code(self, name: str, cc: ComputeCapability) -> Code:
        """Return a kernel's machine code for a GPU."""
        raise NotImplementedError

    def typed(self, declared: Declared, ctype: str) -> Declared:
        """Return a parameter in the type that the compiler has for it.

        Classes there may be enumerations, with numbers as values.
        """
        base = ctype.rstrip("*")
        if base in BUILTIN.values():
            known = TYPES.get(declared.ctype.rstrip("*[] ")), declared.is_pointer
            same = known == (TYPES.get(base, ""), ctype.endswith("*"))
            return declared if same else replace(declared, ctype=ctype)
        is_class = ctype == base and base.rpartition("::")[2] not in self.enumerations
        return replace(declared, ctype=declared.ctype or ctype, is_class=is_class)

    @property
    def enumerations(self) -> Collection[str]:
        """The names of the file's enumerations."""
        return ()

    def lookups(self, name: str, cc: ComputeCapability) -> Sequence[Lookup]:
        """Return the files that a kernel's machine code for a GPU depends on, beside this one."""
        return ()

    def declared(self, name: str, sizes: Sequence[int | None]) -> tuple[Declared, ...]:
        """Return a kernel's parameters, of these sizes, as far as they are known."""
        return tuple(Declared(f"arg{number}", "") for number in range(len(sizes)))


class CudaSource(CodeFile):
    """CUDA C++: compiled for each GPU and kernel that is requested.

    Lines that the text attributes to one of the files in `calls` were inlined by these.
    """

    def __init__(
        self, text: str, file: str, options: Options, calls: Mapping[str, tuple[Call, ...]] = {}
    ) -> None:
        super().__init__(file)
        self._calls = calls
        if "\0" in text:
            raise InputError(f"{file} has a null character; the compiler would ignore the rest")
        self._text, self._given = text, options
        self.options = replace(
            options, definitions=(*nvcc_definitions.of_nvcc(text), *options.definitions)
        )
        self._made: dict[tuple[str | None, str], tuple[compiler.Compiled, cubin.Cubin]] = {}
        self._failed: dict[tuple[str | None, str], compiler.CompileError] = {}

    @property
    def text(self) -> str:
        """The source."""
        return self._text

    def with_constant(self, root: Root, value: str) -> CudaSource:
        """Return the source with another value of a macro, a constant or a literal of host code.

        It is the same source where its text does not have that constant, or has that value.
        """
        kind, *about = root
        text = self.text
        if kind == "macro":
            name = str(about[0])
            if str(whole_numbers(text).get(name)) != value:
                text, _ = with_values(text, {name: value})
        elif kind == "at":
            begin, end = (int(str(one)) for one in about[:2])
            whole = files.to_bytes(text)
            if whole[begin:end] == about[2]:
                whole = whole[:begin] + value.encode() + whole[end:]
                text = whole.decode(errors="surrogateescape")
        return self if text == self.text else CudaSource(text, self.file, self._given, self._calls)

    @cached_property
    def _device_text(self) -> str:
        return host.device_code(self.text, self.file)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the file's kernels."""
        return tuple(self.kernels)

    @cached_property
    def kernels(self) -> Mapping[str, tuple[Declared, ...]]:
        """The kernels that the text defines, with their parameters."""
        return signature.kernels(self.declarations)

    @cached_property
    def structures(self) -> Structures:
        """The members of the structures that the text defines."""
        return {
            name: one._replace(fields=tuple(resolved(o, self._aliases) for o in one.fields))
            for name, one in structures(self.declarations).items()
        }

    @cached_property
    def _aliases(self) -> Mapping[str, Sequence[str]]:
        return aliases(self.declarations, self.options.definitions)

    def _known_variables(self) -> Mapping[str, cubin.Variable] | None:
        try:
            return self._compiled(None, DEFAULT_ARCHITECTURE)[1].variables
        except (compiler.CompileError, wheels.CompilerMissingError):
            return None

    def _type_of(self, one: cubin.Variable) -> str:
        name = symbols.cpp_name(one.name).rpartition("::")[2]
        found = self._variable_types.get(name)
        ctype = resolved(found, self._aliases).ctype if found is not None else ""
        return ctype if one.size % np.dtype(TYPES.get(ctype, np.uint8)).itemsize == 0 else ""

    @cached_property
    def enumerations(self) -> Collection[str]:
        """The names of the file's enumerations."""
        return frozenset(_ENUMERATION.findall(self.declarations))

    @cached_property
    def _variable_types(self) -> Mapping[str, Declared]:
        return variables.declared_types(self.declarations)

    def _element_bytes(self, name: str) -> Mapping[str, int]:
        """Return the bytes of an element of each array in shared and constant memory, as declared.

        Types that are parameters of a template are those of the kernel's instance.
        """
        known = self._types_in(name)
        found = variables.declared_types(self.declarations, ("shared", "constant"))
        sizes = {
            one.name: size_of(resolved(one, known).ctype, self.structures) for one in found.values()
        }
        return {variable: size for variable, size in sizes.items() if size}

    def _types_in(self, name: str) -> Mapping[str, Sequence[str]]:
        """Return the other names of types in a kernel, or in the instance of a template."""
        return {**self._aliases, **of_template(self.templates.get(_plain_name(name), []), name)}

    @cached_property
    def declarations(self) -> str:
        """The text, and then the user's own headers: places of kernels and types as well."""
        found = includes(self.text, self._folders, self.options.definitions).found
        return "\n".join([self.text, *map(read, found)])

    def __getitem__(self, name: str) -> CodeKernel:
        plain = _plain_name(name)
        if plain not in self.kernels and "::" not in name and not self._may_be_made(name):
            known = ", ".join(self.kernels) or "none"
            raise InputError(f"{self.file} has no kernel {plain!r} (its kernels: {known})")
        if plain in self.templates and plain == name.partition("(")[0].rpartition("::")[2].strip():
            raise InputError(
                f"{plain} in {self.file} is a template; give its arguments, as in "
                f"'{example_instance(plain, self.templates[plain], self.declarations)}'"
            )
        if self._may_be_ambiguous(name):
            self._require_one(name)
        return super().__getitem__(name)

    def _may_be_ambiguous(self, name: str) -> bool:
        """Return whether a name means none of the overloads, or several, as far as the text says.

        Types may be aliases, and overloads left out by the preprocessor: only the compiler knows.
        """
        if _types_of(name) is not None:
            return not self.overload(name)
        return len(signature.overloads(self.declarations, _plain_name(name))) > 1

    def _require_one(self, name: str) -> None:
        """Raise InputError, with the overloads that exist, where a name means several kernels."""
        try:
            self.code(name, ComputeCapability(9, 0))
        except compiler.CompileError as error:
            if "<" not in name or "(" in name:
                raise
            found = self.spelled(name)
            raise InputError(
                f"{self.file} has {len(found)} templates {_plain_name(name)!r}: write their types "
                f"out, as in {' or '.join(map(repr, found))}"
            ) from error

    def _may_be_made(self, name: str) -> bool:
        """Return whether a macro may make a kernel of that name."""
        is_named = re.search(rf"\b{re.escape(name)}\b", self.declarations) is not None
        return is_named and _KERNEL_MACRO.search(self.declarations) is not None

    @cached_property
    def templates(self) -> Mapping[str, list[str]]:
        """The parameters of each kernel that is a template."""
        return signature.templates(self.declarations)

    def declared(self, name: str, sizes: Sequence[int | None]) -> tuple[Declared, ...]:
        """Return a kernel's parameters, of these sizes, as the source declares them."""
        found = self.overload(name)
        if len(found) != len(sizes):
            return super().declared(name, sizes)
        known = self._types_in(name)
        return tuple(resolved(o, known, size) for o, size in zip(found, sizes, strict=True))

    def spelled(self, name: str) -> list[str]:
        """Return the names of all kernels of one name, with their types where they are several.

        Namespaces and the types that aliases mean are those of the machine code, if it is there.
        """
        found = signature.overloads(self.declarations, _plain_name(name))
        if len(found) < 2:
            return [name]
        if "<" in name:
            known = self._types_in(name)
            return _with_types(
                [(name, [resolved(o, known).qualified for o in one]) for one in found]
            )
        types = [[resolved(o, self._aliases).qualified for o in one] for one in found]
        made = (
            (symbols.cpp_name(one), symbols.parameter_types(one, qualified=True))
            for one in self._known_kernels(name)
        )
        held = [(full, taken) for full, taken in made if taken]
        if held:
            places = [next(iter(_alike(taken, types)), -1) for _, taken in held]
            return [name for _, name in sorted(zip(places, _with_types(held), strict=True))]
        shown = [(name, ["const " * points_to_const(o) + _bare(o) for o in one]) for one in types]
        return list(dict.fromkeys(_with_types(shown)))

    def _known_kernels(self, name: str) -> list[str]:
        """Return the symbols of the kernels of a plain name, none where nothing is compiled."""
        try:
            held = self._compiled(None, DEFAULT_ARCHITECTURE)[1]
        except (compiler.CompileError, wheels.CompilerMissingError):
            return []
        return [one for one in held.kernels if _plain_name(symbols.cpp_name(one)) == name]

    def overload(self, name: str) -> tuple[Declared, ...]:
        """Return a kernel's parameters as declared, of the one with the types in its name."""
        plain, types = _plain_name(name), _types_of(name)
        if types is None:
            return self.kernels.get(plain, ())
        known, found = self._types_in(name), signature.overloads(self.declarations, plain)
        same = _alike(types, [[resolved(o, known).qualified for o in one] for one in found])
        return found[same[0]] if same else ()

    def code(self, name: str, cc: ComputeCapability) -> Code:
        """Return a kernel's machine code for a GPU."""
        asked = self._instance(name)
        made, held = self._compiled(asked, compiler.architecture(cc), name)
        is_whole = asked is not None and (asked.startswith("(") or _types_of(name) is None)
        key = asked if asked is not None and is_whole else name
        symbol = made.names.get(key) or _symbol(name, held, self.file)
        found = _code(held, name, symbol, made.listing, made.generator, self.file)
        ptx = ptx_of(made.ptx)
        section = listing.with_calls(found.section, ptx, (self.file,))
        sizes = self._element_bytes(name)
        return replace(found, section=section, ptx=ptx, calls=self._calls, element_bytes=sizes)

    def lookups(self, name: str, cc: ComputeCapability) -> Sequence[Lookup]:
        """Return the files that a kernel's machine code depends on, whether or not it compiles."""
        try:
            made, _ = self._compiled(self._instance(name), compiler.architecture(cc), name)
            found = made.lookups
        except compiler.CompileError as error:
            found = error.lookups
        return found or ()

    def _compiled(
        self, asked: str | None, arch: str, kernel: str | None = None
    ) -> tuple[compiler.Compiled, cubin.Cubin]:
        """Return the compiled file; once for all its kernels that are no templates.

        Where it does not compile as a whole, what a kernel reaches of it and its headers is tried.
        """
        key = asked, arch
        if key not in self._made and key not in self._failed:
            try:
                named = [] if asked is None else [asked]
                text = self._device_text
                made = compiler.compiled(text, self.file, named, arch, self.options)
                held = cubin.read(made.cubin, self.file)
                if not held.kernels and self._build != self.options:
                    made = compiler.compiled(text, self.file, named, arch, self._build)
                    held = cubin.read(made.cubin, self.file)
                self._made[key] = made, held
            except compiler.CompileError as error:
                self._failed[key] = error
        if key in self._failed:
            key = f"{kernel} alone", arch
            if key not in self._made:
                try:
                    made = self._reduced(asked, arch, kernel)
                except compiler.CompileError as error:
                    whole = self._failed[asked, arch]
                    if whole.missing_header or error.count <= whole.count:
                        raise
                    raise whole from None
                self._made[key] = made, cubin.read(made.cubin, self.file)
        return self._made[key]

    def _reduced(self, asked: str | None, arch: str, kernel: str | None) -> compiler.Compiled:
        """Compile the declarations that a kernel reaches, or all device code does for None."""
        options = with_folders_around(self.text, self.file, self._build)
        folders = compiler.folders_of(self.file, options)
        found = includes(self.text, folders, options.definitions).found
        own = {os.path.realpath(path): read(path) for path in found}
        texts = reachable.device_texts({**own, "": self.text}, kernel)
        text = texts.pop("")
        headers = left_out({self.file: text, **texts}, folders, wheels.headers())
        named = [] if asked is None else [asked]
        replaced = replace(headers, texts=texts)
        try:
            return compiler.compiled(text, self.file, named, arch, options, replaced)
        except compiler.CompileError as error:
            if not headers.missing or error.missing_header:
                raise error from None
            names = ", ".join(headers.missing)
            words = f"{error}\ngive the folder of {names} with -I FOLDER (includes=)"
            raise compiler.CompileError(words, error.lookups) from None

    @cached_property
    def _build(self) -> Options:
        """The options of a build without which the file would have no kernel."""
        more = nvcc_definitions.of_build(self.text)
        given = {one.partition("=")[0] for one in self.options.definitions}
        more = tuple(one for one in more if one.partition("=")[0] not in given)
        return replace(self.options, definitions=(*self.options.definitions, *more))

    @cached_property
    def _folders(self) -> list[str]:
        return compiler.folders_of(self.file, self.options)

    def _instance(self, name: str) -> str | None:
        """Return the name of a template's instance or in a namespace, None for any other."""
        full, bracket, types = name.partition("(")
        if "<" in full and "::" not in full.partition("<")[0]:
            full = signature.namespaces(self.declarations).get(_plain_name(full), "") + full
        if bracket and len(signature.overloads(self.declarations, _plain_name(full))) > 1:
            taken = [resolved(o, self._types_in(name)).qualified for o in self.overload(name)]
            written = f"{', '.join(taken)})" if taken else types
            return f"(void(*)({written}){full}" if "<" in full else None
        return full if "<" in full or "::" in full else None


class CubinFile(CodeFile):
    """A cubin that some compiler left: for one kind of GPU."""

    def __init__(self, data: bytes, file: str) -> None:
        super().__init__(file)
        self.held_cubin = cubin.read(data, file)
        self._data = data

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the file's kernels."""
        return tuple(self.held_cubin.kernels)

    @cached_property
    def _listing(self) -> str:
        return compiler.listing_of(self._data, self.file)

    def __getitem__(self, name: str) -> CodeKernel:
        return super().__getitem__(symbol_of(name, self.held_cubin.kernels, self.file))

    def _known_variables(self) -> Mapping[str, cubin.Variable] | None:
        return self.held_cubin.variables

    def code(self, name: str, cc: ComputeCapability) -> Code:
        """Return a kernel's machine code; InputError where it is for another GPU."""
        own = ComputeCapability.parse(str(self.held_cubin.arch))
        if own.major != cc.major or own.minor > cc.minor:
            raise InputError(f"{self.file} holds code for compute capability {own}, not {cc}")
        return _code(self.held_cubin, name, name, self._listing, "cubin", self.file)


def symbol_of(name: str, known: Collection[str], file: str) -> str:
    """Return the symbol in a file that a name means, also by its name in C++; else InputError."""
    found = [name] if name in known else symbols.named(name, dict.fromkeys(known))
    if len(found) != 1:
        listed = ", ".join(known) or "none"
        raise InputError(f"{file} has no kernel {name!r} (its kernels: {listed})")
    return found[0]


def _plain_name(name: str) -> str:
    return name.partition("(")[0].partition("<")[0].rpartition("::")[2].strip()


def _types_of(name: str) -> list[str] | None:
    """Return the parameters' types that a kernel is named with, None for a name alone."""
    _, bracket, types = name.partition("(")
    return parts(types.strip().removesuffix(")")) if bracket else None


def _alike(types: Sequence[str], overloads: Sequence[Sequence[str]]) -> list[int]:
    """Return the overloads with these parameters, of several those with the same `const`."""
    bare, consts = list(map(_bare, types)), list(map(points_to_const, types))
    found = [at for at, one in enumerate(overloads) if list(map(_bare, one)) == bare]
    same = [at for at in found if list(map(points_to_const, overloads[at])) == consts]
    return same or found


def _with_types(named: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return names with their parameters' types, with `const` where others are equal but for it."""
    plain = [f"{name}({', '.join(map(_unqualified, types))})" for name, types in named]
    return [
        one if plain.count(one) == 1 else f"{name}({', '.join(types)})"
        for one, (name, types) in zip(plain, named, strict=True)
    ]


# Of types of one size and kind the first name: `unsigned`, `unsigned int` and `uint32_t` are one.
_FIRST_NAMES = {dtype: name for name, dtype in reversed(list(TYPES.items()))}


def _unqualified(ctype: str) -> str:
    return " ".join(_QUALIFIER.sub("", ctype).split())


def _bare(ctype: str) -> str:
    """Return a type without qualifiers and blanks, as machine code has it of parameters."""
    text = _unqualified(ctype.replace("[]", "*"))
    base = text.rstrip("*& ")
    named = _FIRST_NAMES[TYPES[base]] if base in TYPES else base
    return "".join(f"{named}{text[len(base) :]}".split())


def _symbol(name: str, held: cubin.Cubin, file: str) -> str:
    """Return the name that a kernel bears in machine code (Itanium C++ ABI)."""
    plain, types = name.partition("(")[0].strip(), _types_of(name)
    last = plain.rpartition("::")[2]
    mangled = f"{len(last)}{last}"
    found = [
        k
        for k in held.kernels
        if k == plain
        or k.startswith(f"_Z{mangled}")
        or (k.startswith("_ZN") and f"{mangled}E" in k)
    ]
    if "::" in plain:
        found = [k for k in found if f"::{symbols.cpp_name(k)}".endswith(f"::{plain}")]
    taken = [symbols.parameter_types(k, qualified=True) for k in found]
    names = _with_types([(plain, one or ()) for one in taken])
    if types is not None:
        places = _alike(types, [one or ["?"] for one in taken])
        found, names = [found[at] for at in places], [names[at] for at in places] or names
    if not found:
        known = {
            f"{plain} (extern C)" if t is None else o for o, t in zip(names, taken, strict=True)
        }
        unknown = f"{plain} stands for all its types" if "<" in plain else "is it a template?"
        words = f"its overloads: {', '.join(sorted(known))}" if known else unknown
        raise InputError(f"{file} has no kernel {name!r}: {words}")
    if len(found) > 1:
        with_types = sorted(set(names))
        raise InputError(
            f"{file} has {len(found)} kernels {name!r}: write their types, or namespaces, out, as "
            "in "
            + " or ".join(map(repr, with_types if len(with_types) > 1 else [f"space::{plain}"]))
        )
    return found[0]


def _code(held: cubin.Cubin, name: str, symbol: str, text: str, generator: str, file: str) -> Code:
    kernel = held.kernels.get(symbol)
    section = listing.section(text, symbol, (file,), kernel.text if kernel else b"")
    if section is None or kernel is None:
        raise InputError(f"{file}: the machine code of {name} is not there")
    whole = linked(kernel, held, section, text, (file,))
    ptx = ptx_of(held.ptx) if held.ptx else None
    return Code(name, whole.kernel, whole.cubin, whole.section, generator, ptx)


class CodeKernel(MachineCode):
    """A kernel in machine code, launched with `kernel[grid, block, stream, shared_bytes]`."""

    def __init__(self, file: CodeFile, name: str) -> None:
        self.file = file
        self.__name__ = name
        self._codes: dict[ComputeCapability, Code] = {}
        self._programs: dict[Any, Program] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.__name__} of {self.file.file}>"

    @property
    def source(self) -> Source:
        """The file, and the parameters as the source names them."""
        return Source(self.file.file, tuple(one.name for one in self.parameters))

    @property
    def parameters(self) -> tuple[Declared, ...]:
        """The parameters with their types as far as they are known, members of structures apart."""
        found = self.file.declared(self.__name__, self._parameter_sizes())
        if not isinstance(self.file, CudaSource):
            types = symbols.parameter_types(self.__name__) or []
            if len(types) == len(found):
                found = tuple(replace(one, ctype=of) for one, of in zip(found, types, strict=True))
        parts = [members(one, self.file.structures) for one in found]
        return tuple(
            declared
            for one, held in zip(found, parts, strict=True)
            for declared in ([one] if held is None else [part.declared for part in held])
        )

    @property
    def sizes(self) -> list[int]:
        """The sizes of the parameters of machine code, as far as it is made."""
        return [size for size in self._parameter_sizes() if size is not None]

    def _parameter_sizes(self) -> list[int | None]:
        """Return the sizes of the parameters, as far as code is there that says them."""
        known = next(iter(self._codes.values()), None)
        plain = _plain_name(self.__name__)
        if known is None and isinstance(self.file, CudaSource) and plain in self.file.kernels:
            return [None] * len(self.file.overload(self.__name__))
        if isinstance(self.file, CubinFile):
            return [one.size for one in self.file.held_cubin.kernels[self.__name__].parameters]
        known = known or self.code(ComputeCapability(9, 0))
        return [parameter.size for parameter in known.kernel.parameters]

    def code(self, cc: ComputeCapability) -> Code:
        """Return the kernel's machine code for a GPU; made once."""
        if cc not in self._codes:
            self._codes[cc] = self.file.code(self.__name__, cc)
        return self._codes[cc]

    def registers(self, cc: str | ComputeCapability) -> int:
        """Return the registers that a thread has on a GPU of `cc`."""
        return self.code(ComputeCapability.parse(cc)).registers

    def prepare(self, launch: Launch, args: Sequence[Any], cc: ComputeCapability) -> Prepared:
        """Return the kernel with its arguments as it runs on a GPU of `cc`."""
        code = self.code(cc)
        if launch.cluster != NO_CLUSTER:
            code = code.in_clusters(launch.cluster)
        launch = replace(launch, cluster=code.kernel.cluster)
        parameters = code.kernel.parameters
        declared = self._declared(code)
        given = arguments.given(self.__name__, parameters, declared, self.file.structures, args)
        held = contents(code, self._set(code))
        # A parameter may bear the name of a variable.
        given = [
            one._replace(name=f"{one.name} (argument)") if one.name in held.arrays else one
            for one in given
        ]
        bound = {one.name: one.value for one in given} | held.arrays
        if code.grid_barrier is not None:
            bound[code.grid_barrier[0]] = np.zeros(GRID_BARRIER_WORDS, np.uint32)
        copies = arrays.in_native_order(bound)
        swapped = tuple((copy, bound[name]) for name, copy in copies.items())
        program = self._program(code, given, bound, held, cc)
        return Prepared(
            program,
            launch,
            {**bound, **copies},
            cc,
            self.file.file,
            swapped=swapped,
            language=symbols.language(code.kernel.name),
            source_text=self.file.text,
        )

    def _declared(self, code: Code) -> tuple[Declared, ...]:
        """Return the parameters as the source declares them, in types as the compiler has them."""
        sizes = [one.size for one in code.kernel.parameters]
        declared = self.file.declared(self.__name__, sizes)
        types = symbols.parameter_types(code.kernel.name)
        if types is None or len(types) != len(declared):
            return declared
        return tuple(map(self.file.typed, declared, types))

    def _set(self, code: Code) -> dict[str, np.ndarray[Any, Any]]:
        """Return the values of variables that were set, by their symbols."""
        known = code.cubin.variables
        pairs = (self.file.held(*one, known) for one in self.file.variables.items())
        return {variable.name: array for variable, array in pairs}

    def _program(
        self,
        code: Code,
        given: Sequence[Given],
        bound: Mapping[str, Any],
        held: InitialMemory,
        cc: ComputeCapability,
    ) -> Program:
        """Return the kernel as a program, cached by the kinds of its arguments."""
        pointers = tuple(n for n, v in bound.items() if isinstance(v, POINTERS))
        kinds = tuple(one[:3] for one in given)
        key = (cc, code.kernel.is_in_clusters, pointers, kinds, held.constants)
        if key not in self._programs:
            self._programs[key] = translated(code, given, held)
        return self._programs[key]


def translated(code: Code, given: Sequence[Given], held: InitialMemory) -> Program:
    """Return a kernel as a program, for what is passed and what memory holds.

    Parameters that are arrays, or stand for some, are known as pointers by their names.
    """
    pointers: dict[tuple[int, int], str] = {}
    for name, offset, size, value in given:
        if isinstance(value, POINTERS) and size == POINTER_BYTES:
            pointers[0, offset] = pointers[0, offset + 4] = name
    for offset, (name, _) in code.links.addresses.items():
        pointers[cubin.ADDRESS_BANK, offset] = pointers[cubin.ADDRESS_BANK, offset + 4] = name
    for offset, name in code.words.items():
        if name in code.images:
            pointers[0, offset] = pointers[0, offset + 4] = name
    layout = BankLayout(
        parameters=tuple((name, offset, size) for name, offset, size, _ in given),
        words=code.words,
        fixed={CONSTANT_BANK: held.constants, KERNEL_BANK: code.kernel.constants},
        addresses=code.links.addresses,
        links=held.links,
        images=code.images,
        heap=code.heap,
        functions=code.cubin.functions,
        grid_barrier=code.grid_barrier,
        stack_bytes=code.kernel.local_bytes,
        static_shared_bytes=code.static_shared_bytes,
        shared_start=code.window,
        reserved_bytes=RESERVED_BYTES if RESERVED in code.words.values() else 0,
    )
    return translate(code, layout, pointers)


def cuda_file(
    path: str | Path,
    *,
    includes: Sequence[str] = (),
    definitions: Sequence[str] = (),
    standard: str = "c++17",
    values: Mapping[str, str] | None = None,
    debug: bool = False,
) -> CodeFile:
    """Return the kernels of a `.cu` file or a `.cubin`; InputError where it cannot be read.

    Of a Python file, those in its strings; it is not run.

    `includes` are folders of headers, `definitions` macros such as "N=4". `values` replace those of
    macros and constants that the file itself defines, by name. `debug` compiles without
    optimisation, as nvcc -G: every access of the source is there.
    """
    file = Path(path)
    if file.suffix == ".cubin":
        return CubinFile(files.contents(file, MAX_CODE_BYTES, again=True), str(file))
    text = files.source(file, MAX_CODE_BYTES, again=True)
    if file.suffix == ".py":
        text = cuda_of(text, str(file))
    elif file.suffix == ".ipynb":
        text = cuda_of_notebook(text, str(file))
        files.show_as(file, text)
    text, added = with_values(text, values or {})
    options = Options(tuple(map(str, includes)), (*definitions, *added), standard, debug)
    return CudaSource(text, str(file), options)


def cuda_source(
    text: str,
    *,
    includes: Sequence[str] = (),
    definitions: Sequence[str] = (),
    standard: str = "c++17",
) -> CodeFile:
    """Return the kernels of CUDA C++ in a string."""
    return CudaSource(text, "source.cu", Options(tuple(includes), tuple(definitions), standard))
