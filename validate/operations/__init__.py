"""Single operations of CUDA C++, each run on about 2,000 operands, on a GPU and in the simulator.

A room of the corpus is a table of operations: the functions of the CUDA math API, conversions,
integer and SIMD intrinsics, warp functions, atomics. The GPU's results are kept as hashes.
"""
