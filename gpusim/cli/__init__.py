"""The command line: what a user types, turned into calls of the library and printed."""
