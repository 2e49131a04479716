"""The languages of kernels' sources."""

PYTHON, CUDA_CPP, TRITON = "Python", "CUDA C++", "Triton"
