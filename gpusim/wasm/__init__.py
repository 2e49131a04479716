"""Typed Python to WebAssembly: the same functions, interpreted by CPython or compiled.

Translated are functions and methods with annotations of `int`, `float`, `bool`, classes with
annotated fields (or None), lists and tuples of these: arithmetic, comparisons, branches, loops,
calls, objects and lists. Whatever else a function contains is refused with line and caret
(`NotTranslatedError`). An `int` has 64 bits, an index outside a list or a division by zero traps.

`module` makes the text of a module (`module_of`), `instance` runs it, and `image` copies objects
into its memory and back. `value_types` and `layouts` define the memory layout of objects, `sources`
finds functions, `expressions` and `statements` translate them.
"""
