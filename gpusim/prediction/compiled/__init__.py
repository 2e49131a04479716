"""The clock compiled to WebAssembly: the same classes that SimPy drives, equal bit for bit.

`evaluator` is the only door. `clock` translates (`gpusim.wasm`), compiles and plays, with the
agenda of `events`; `step_columns` places the steps of warps in memory.
"""
