"""Which rows of the table of mnemonics occur on which architectures: in corpus, twins and others.

`python tests/sass/seen.py` writes corpus/seen.csv, from which the documentation has its table.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))

from gpusim.catalogue import entries  # noqa: E402
from gpusim.cuda_cpp import host  # noqa: E402
from gpusim.errors import GpusimError  # noqa: E402
from gpusim.launch.grid import ComputeCapability  # noqa: E402
from gpusim.sass import compiler, listing  # noqa: E402
from gpusim.sass.mnemonics import ROOMS  # noqa: E402
from gpusim.sass.table import MNEMONICS, find  # noqa: E402
from validate import cases, twins  # noqa: E402

assert ROOMS
TABLE = HERE / "corpus" / "seen.csv"


def sources() -> Iterator[tuple[Path, list[str]]]:
    """Yield files with the instances of templates that are asked of them."""
    for path in sorted((HERE / "corpus").glob("*.cu")):
        yield path, []
    yield ROOT / "validate" / "others" / "basics.cu", ["transpose_tile<32>", "transpose_tile<33>"]
    instances: dict[str, set[str]] = {}
    for entry in entries():
        for case in cases.counters_of(entry):
            twin = twins.twin_of(case.setups(entry)[0])
            instances.setdefault(twin.file, set()).add(twin.expression)
    for file, expressions in instances.items():
        yield twins.FOLDER / file, sorted(expressions)


def seen(cc: str) -> set[str]:
    """Return the rows of the table that occur on an architecture."""
    arch = compiler.architecture(ComputeCapability.parse(cc))
    found = set()
    for path, expressions in sources():
        text = host.device_code(path.read_text(encoding="utf-8"), str(path))
        try:
            made = compiler.compiled(text, str(path), expressions, arch, compiler.Options())
        except GpusimError:
            continue  # it uses what begins with a later architecture
        for name in re.findall(r"\.section\t\.text\.([^,]+),", made.listing):
            section = listing.section(made.listing, name)
            assert section is not None
            rows = (find(row.mnemonic, row.modifiers) for row in section.rows)
            found |= {row.name for row in rows if row is not None}
    return found


def main() -> None:
    """Write the table."""
    by_cc = {cc: seen(cc) for cc in compiler.ARCHITECTURES}
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["mnemonic", *compiler.ARCHITECTURES])
        for name in sorted(MNEMONICS):
            writer.writerow([name, *("x" if name in by_cc[cc] else "" for cc in by_cc)])


if __name__ == "__main__":
    main()
