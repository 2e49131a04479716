"""Correctness checks of a launch: races, barriers, uninitialised reads, undefined behaviour."""
