"""Machine code from selection to the `Program`: registers, guards, order, barriers, branches."""
