"""Choosing instructions: from the SSA form to machine code over virtual registers."""
