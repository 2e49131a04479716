"""ScoR: micro-kernels with races of scopes, labelled by the first word of their files' names.

Kamath, George, Basu: ScoRD: A Scoped Race Detector for GPUs, ISCA 2020. The folder has
`microbenchmarks/src`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .case import ANY, Case

_LAUNCH = re.compile(r"#define\s+(NBLOCKS|TPERBLK)\s+(\d+)")
KERNEL, WORDS = "kmain", 64


def cases(folder: Path) -> Iterator[Case]:
    """Yield the suite's micro-kernels."""
    for file in sorted(folder.rglob("*race_*.cu")):
        launch = {name: int(number) for name, number in _LAUNCH.findall(file.read_text())}
        is_racy = file.stem.startswith("race_")
        yield Case(
            file.stem,
            file,
            (KERNEL,),
            frozenset({ANY}),
            frozenset({ANY} if is_racy else ()),
            grid=(launch.get("NBLOCKS", 1),),
            block=(launch.get("TPERBLK", 1),),
            arguments=(lambda declared: [np.zeros(WORDS, np.uint32) for _ in declared],),
        )
