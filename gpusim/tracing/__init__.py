"""Counting: what a kernel did to the machine, line by line and warp by warp."""
