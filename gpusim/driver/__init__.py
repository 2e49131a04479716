"""In place of CUDA's driver: programs run unchanged, on a simulated GPU.

A program loads the libcuda.so.1 and the runtime of `native/`. They forward its calls to this
package: memory by address, modules of machine code, launches, and the time of streams.
"""
