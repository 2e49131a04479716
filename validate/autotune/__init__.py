"""Configurations of Triton kernels: predicted times beside those measured on an H200."""
