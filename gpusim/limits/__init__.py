"""Limits of a launch: upper bounds on counters, predicted time and findings, and their baseline."""
