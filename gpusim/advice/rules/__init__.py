"""Rules over traces: counters by line, and machine code."""
