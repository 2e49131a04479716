"""Run by Python at the start of a program under gpusim: prepares torch and triton.

A `sitecustomize` of the program's own, further back on its path, is run as well.
"""

import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_HERE = Path(__file__).resolve().parent
_PACKAGE = "gpusim_pytorch"  # the folder above, under a name of its own
_PREPARED = ("torch", "triton", "torch._inductor.compile_fx")


def _package() -> Any:
    if _PACKAGE not in sys.modules:
        spec = importlib.util.spec_from_file_location(_PACKAGE, _HERE.parent / "__init__.py")
        assert spec is not None
        sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)
        _execute(spec, sys.modules[_PACKAGE])
    return sys.modules[_PACKAGE]


def _execute(spec: ModuleSpec, module: ModuleType) -> None:
    assert spec.loader is not None
    spec.loader.exec_module(module)


class _Finder:
    """Finds modules as Python does, and prepares some of them once they are imported."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that is prepared after its own code."""
        if name not in _PREPARED or name in sys.modules:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def then_prepare(module: ModuleType) -> None:
            execute(module)
            _package().imported(module)

        vars(spec.loader)["exec_module"] = then_prepare
        return spec


def _run_the_next() -> None:
    """Run the sitecustomize that this one stands before."""
    others = [one for one in sys.path if Path(one or ".").resolve() != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None:
        _execute(spec, importlib.util.module_from_spec(spec))


if "GPUSIM_DRIVER" in os.environ:
    sys.meta_path.insert(0, _Finder)
_run_the_next()
