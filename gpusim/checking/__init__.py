"""Judging a launch by the order of its accesses: whether it is correct, or only lucky."""
