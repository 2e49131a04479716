"""Decoding of the listing's rows into steps: operation, registers read and written.

A row becomes one step of code, preceded by steps that are never issued for compound operands:
the sum of an address, a second predicate. Registers still have the
hardware's names here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpusim.sass import immediates
from gpusim.sass.decoding import (
    barriers,
    computing,
    constants,
    control,
    copies,
    exchanges,
    matrices,
    memory,
    textures,
    word_barriers,
)
from gpusim.sass.decoding.sources import expect_shape
from gpusim.sass.decoding.steps import (
    REFUSED,
    BankWord,
    Context,
    Decode,
    Micro,
    RefusedError,
    Source,
    UnknownFormError,
)
from gpusim.sass.listing import Row
from gpusim.sass.mnemonics import ROOMS
from gpusim.sass.table import find

__all__ = [
    "BankWord",
    "Context",
    "Micro",
    "RefusedError",
    "Source",
    "UnknownFormError",
    "decoded",
    "micros",
]

assert ROOMS

_DECODERS: Mapping[str, Decode] = {
    **barriers.DECODERS,
    **computing.DECODERS,
    **constants.DECODERS,
    **control.DECODERS,
    **copies.DECODERS,
    **exchanges.DECODERS,
    **matrices.DECODERS,
    **memory.DECODERS,
    **textures.DECODERS,
    **word_barriers.DECODERS,
}


def micros(row: Row, place: int, context: Context) -> Iterator[Micro]:
    """Yield the steps of a row; UnknownFormError for a form outside the table."""
    found = find(row.mnemonic, row.modifiers)
    if found is None and row.mnemonic in REFUSED:
        raise RefusedError(REFUSED[row.mnemonic])
    if found is None:
        raise UnknownFormError(row.name)
    if found.kind != "compute":
        expect_shape(found, row)
    yield from _DECODERS[found.kind](context, row, place, found)


def decoded(rows: Sequence[Row], context: Context) -> Iterator[Micro]:
    """Yield the steps of rows; UnknownFormError, with line and text to report, if unknown."""
    for place, row in enumerate(rows):
        try:
            yield from micros(row, place, context)
        except RefusedError as unit:
            where = f"{row.place.file}, line {row.place.line}" if row.place.line else "its code"
            raise RefusedError(f"{where}: {unit} not simulated ({row.name})") from None
        except (UnknownFormError, immediates.Disagreement) as error:
            where = f"{row.place.file}, line {row.place.line}" if row.place.line else "its code"
            raise UnknownFormError(
                f"{where}: the machine instruction {row.name} is not known in this form: "
                f"{row.text!r}; please report this line ({error})"
            ) from None
