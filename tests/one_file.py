"""Kernels of different bodies in one file: the compiler and the disassembler start once for all."""

from __future__ import annotations

from functools import cache
from typing import Any

import gpusim


@cache
def kernels(template: str, bodies: tuple[str, ...], head: str = "") -> dict[str, Any]:
    """Return a kernel for each body, by the body, from a template of a kernel `k` with `{BODY}`."""
    names = {body: f"k{number}" for number, body in enumerate(dict.fromkeys(bodies))}
    file = gpusim.cuda_source(head + "".join(
        template.replace("void k(", f"void {name}(").replace("{BODY}", body)
        for body, name in names.items()
    ))  # fmt: skip
    return {body: file[name] for body, name in names.items()}
