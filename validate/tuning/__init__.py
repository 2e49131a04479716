"""The choices of `gpusim tune`, compared with measured times of all its candidates on a GPU."""
