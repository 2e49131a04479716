"""CUDA C++ source read as text: declarations, launches of host code, includes; no machine code."""
