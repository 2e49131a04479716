"""Findings on performance: rules over counters, spans and machine code, and the gain of each cure.

The rules are the same for the lowering's code, nvcc's code, `.cu` files and cubins; gains are
simulated.
"""
