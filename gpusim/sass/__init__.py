"""Real machine code as a front end: NVIDIA's compiler and disassembler, cubins, listings, rows.

Here a kernel of CUDA C++ becomes a `Program`; machine, observers and clock are those of all.
"""
