"""Readings of a trace: as tables for a terminal, as drawings of lanes, as plain data for JSON."""
