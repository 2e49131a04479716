"""What each mnemonic means, by the unit of the multiprocessor that serves it."""

from gpusim.sass.mnemonics import (
    control,
    conversion,
    double,
    floating,
    half,
    integer,
    memory,
    packed,
    predicate,
)

# Each adds its rows to the table.
ROOMS = (control, conversion, double, floating, half, integer, memory, packed, predicate)
