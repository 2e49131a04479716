"""Analyses of functions in SSA form: they change nothing."""
