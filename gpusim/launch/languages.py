"""The languages of kernels' sources."""

PYTHON, CUDA_CPP = "Python", "CUDA C++"
