"""Real machine code as a front end: NVIDIA's compiler and disassembler, cubins, listings, rows.

It turns a kernel of CUDA C++ into a `Program`; machine, observers and clock are common to all.
"""
