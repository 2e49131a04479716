"""The binary operations of reductions, as device functions."""

# Bodies of kernels are in the dialect: the compiler infers their types.
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
