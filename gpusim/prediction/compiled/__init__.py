"""The clock compiled: the same classes that SimPy plays, as WebAssembly.

`player` alone is known outside. `clock` translates, compiles and plays, with the agenda that
`events` has. `kinds` and `layouts` say how what is played lies in memory, `image` brings it there.
`sources` finds functions, `expressions` and `statements` translate them, `module` puts them
together: what they do not know they refuse, with line and caret.
"""
