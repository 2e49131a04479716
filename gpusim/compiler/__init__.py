"""From a Python function in the dialect to SSA form: reading, then building."""
