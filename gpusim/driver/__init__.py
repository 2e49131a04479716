"""Where CUDA's driver stands: programs run as they are, and see a GPU that is simulated.

A program loads the libcuda.so.1 and the runtime of `native/`. They forward its calls to this
package: memory by address, modules of machine code, launches, and the time of streams.
"""
