"""Where CUDA's driver stands: programs run as they are, and see a GPU that is simulated.

A program finds libcuda.so.1 and the runtime of `native/`, which ask here: memory by address,
machine code as it was compiled, launches, and the time of streams.
"""
