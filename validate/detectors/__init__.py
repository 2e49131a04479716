"""Suites of kernels with known bugs, that others wrote: how many of them `check` finds.

A suite lies in a folder that the user has. Its labels are read where its authors put them: in file
names (Indigo, ScoR) or first lines (GPUVerify).
"""
