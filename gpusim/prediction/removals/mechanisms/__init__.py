"""The mechanisms that a launch can be played without, a function each."""
