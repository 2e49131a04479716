"""Typed Python to WebAssembly: the same functions, interpreted by CPython or compiled.

Translated are functions and methods with annotations of `int`, `float`, `bool`, classes with
annotated fields (or None), lists and tuples of these: arithmetic, comparisons, branches, loops,
calls, objects and lists. Whatever else a function contains is refused with line and caret
(`NotTranslatedError`). An `int` has 64 bits, an index outside a list or a division by zero traps.

`memory` has records: fields of 8 to 64 bits at an address, in the memory of a module or, when
interpreted, in a buffer. `integers` has the bits of a number, and numbers cut to some width.
Functions over these alone are parts of larger modules (`module.functions_of`), and call what such a
module has beside them (`sources.external`).

`module` makes the text of a module (`module_of`), `instance` runs it, and `image` copies objects
into its memory and back. `value_types` and `layouts` define the memory layout of objects, `sources`
finds functions, `expressions` and `statements` translate them.
"""
