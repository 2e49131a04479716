"""Warps in linear memory: divergence, waiting and reconvergence of their splits.

Typed Python: `text` translates it (`gpusim.wasm`) to functions shared by the modules of all
programs, and tests interpret it. `state` has the records of a warp and of a launch, `convergence`
tokens and waiting splits, `barriers` those of a block, `scheduling` the order of warps and blocks.
`accesses` finds arrays and equal numbers, `steps` records steps for observers, `races` compares
accesses, `copies` are asynchronous ones. `banks` counts wavefronts, `turns` runs warps in the order
of NumPy's machine.
"""
