"""Instructions: operations and their semantics, and floating-point arithmetic."""
