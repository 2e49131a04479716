"""The kernels of the catalogue, one family a file. A new kernel is one more decorated function."""
