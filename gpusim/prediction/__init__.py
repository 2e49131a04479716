"""Time: the duration of a launch on a named GPU, and its limiters."""
