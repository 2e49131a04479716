"""Warps in linear memory: their splits, and how they part, wait and go on.

Typed Python: `text` translates it (`gpusim.wasm`) to the functions that the module of each program
has beside its own, and tests interpret it. `state` has the records of a warp and of a launch,
`convergence` tokens and waiting splits, `barriers` those of a block, `scheduling` the order of
warps and blocks. `accesses` finds arrays and equal numbers, `steps` records what observers hear,
`races` compares accesses, `copies` are asynchronous ones. `banks` counts wavefronts, `turns` runs
warps in the order of NumPy's machine.
"""
