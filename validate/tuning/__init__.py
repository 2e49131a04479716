"""The choices of `gpusim tune`, held against measured times of all its candidates on a GPU."""
