"""The rows of mnemonics, by kinds of numbers and by units."""

from gpusim.sass.mnemonics import (
    control,
    conversion,
    double,
    eight_bits,
    floating,
    half,
    integer,
    matrices,
    memory,
    packed,
    predicate,
    textures,
)

# Each adds its rows to the table.
ROOMS = (
    control, conversion, double, eight_bits, floating, half, integer, matrices, memory, packed,
    predicate, textures,
)  # fmt: skip
