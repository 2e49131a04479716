"""The clock compiled to WebAssembly: the same classes that SimPy drives, equal bit for bit.

`evaluator` is the only door. `clock` translates, compiles and plays, with the agenda of `events`.
`value_types` and `layouts` define the memory layout of objects, `image` copies them in and out.
`sources` finds functions, `expressions` and `statements` translate them, `module` links them;
unsupported Python is refused with line and caret.
"""
