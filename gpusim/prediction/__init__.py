"""Time: what a launch takes on a named GPU, and why."""
