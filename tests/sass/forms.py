"""The operand forms that compilers write: one instruction of each, with its bits.

`python tests/sass/forms.py` writes corpus/forms.txt from the corpus and the operations of
`validate`, for every architecture that is known.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))

from gpusim.cuda_cpp import host  # noqa: E402
from gpusim.errors import GpusimError  # noqa: E402
from gpusim.launch.grid import ComputeCapability  # noqa: E402
from gpusim.sass import compiler, cubin, listing  # noqa: E402
from gpusim.sass.listing import Row  # noqa: E402
from gpusim.sass.operands import Operand  # noqa: E402
from validate.operations.operation import source  # noqa: E402
from validate.operations.rooms import ROOMS, room  # noqa: E402

FORMS = HERE / "corpus" / "forms.txt"
# What stands for the labels of a kernel, and for the kernel itself.
LABEL, KERNEL = ".L_x_1", "kernel"


def rows() -> list[Row]:
    """Return the rows that the file of forms holds."""
    lines = (line.partition(" ") for line in FORMS.read_text(encoding="utf-8").splitlines())
    return [listing.row_of_text(text, int(bits, 16)) for bits, _, text in lines]


def sources() -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of files."""
    for path in (
        *sorted((HERE / "corpus").glob("*.cu")),
        ROOT / "validate" / "others" / "basics.cu",
    ):
        yield str(path), host.device_code(path.read_text(encoding="utf-8"), str(path))
    for name in ROOMS:
        yield f"{name}.cu", source(room(name))


def compiled_rows(cc: str) -> Iterator[Row]:
    """Yield the rows of all kernels on an architecture."""
    arch = compiler.architecture(ComputeCapability.parse(cc))
    for name, text in sources():
        try:
            made = compiler.compiled(text, name, [], arch, compiler.Options())
        except GpusimError:
            continue  # it uses what begins with a later architecture
        for symbol, kernel in cubin.read(made.cubin, name).kernels.items():
            section = listing.section(made.listing, symbol, (), kernel.text)
            assert section is not None
            yield from section.rows


def form(row: Row) -> tuple[object, ...]:
    """Return what rows of one form have in common."""
    return row.name, *map(_form_of_operand, row.operands)


def _form_of_operand(operand: Operand) -> tuple[object, ...]:
    is_nan = operand.kind == "F" and "NAN" in operand.name
    terms = [(one.register[0], one.bits, one.scale, one.unsigned) for one in operand.terms]
    signs = operand.negated, operand.inverted, operand.absolute
    facts = operand.is_zero, operand.is_true, is_nan, operand.bank, bool(operand.name)
    return operand.kind, operand.suffixes, tuple(terms), *signs, *facts


def text(row: Row) -> str:
    """Return a row as a listing has it, with a label instead of its own ones."""
    shown = re.sub(r"`\((?!\.L_).*?\)", f"`({KERNEL})", row.text)
    shown = re.sub(r"`\(\.L_.*?\)", f"`({LABEL})", shown)
    return f'{shown} (*"BRANCH_TARGETS {LABEL}"*)' if row.targets else shown


def main() -> None:
    """Write the file."""
    found: dict[tuple[object, ...], str] = {}
    for cc in compiler.ARCHITECTURES:
        for row in compiled_rows(cc):
            assert row.bits is not None
            found.setdefault(form(row), f"{row.bits:032x} {text(row)}")
    lines = sorted(found.values(), key=lambda line: line.partition(" ")[2])
    FORMS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
