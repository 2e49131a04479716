"""Rewriting the SSA form: one small file a pass, and the plain tuple that puts them in order."""
