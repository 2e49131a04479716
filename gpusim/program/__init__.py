"""Facts of a program before it runs: control flow, liveness, taint, special operands."""
