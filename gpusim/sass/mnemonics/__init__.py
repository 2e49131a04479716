"""What each mnemonic means, by the unit of the multiprocessor that serves it."""

from gpusim.sass.mnemonics import (
    control,
    conversion,
    double,
    eight_bits,
    floating,
    half,
    integer,
    memory,
    packed,
    predicate,
)

# Each adds its rows to the table.
ROOMS = (
    control, conversion, double, eight_bits, floating, half, integer, memory, packed, predicate,
)  # fmt: skip
