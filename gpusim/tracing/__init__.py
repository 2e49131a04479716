"""Tracing: exact counters of a kernel's run, line by line and warp by warp."""
