"""What a reduction does with two elements, as device functions."""

# Bodies of kernels are in the dialect, whose types the compiler works out.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from gpusim import cuda


@cuda.jit(device=True)
def add(a, b):
    """Return the sum."""
    return a + b


@cuda.jit(device=True)
def larger(a, b):
    """Return the larger one; a number rather than NaN."""
    return max(a, b)


@cuda.jit(device=True)
def smaller(a, b):
    """Return the smaller one; a number rather than NaN."""
    return min(a, b)


COMBINE = {"sum": add, "max": larger, "min": smaller}
