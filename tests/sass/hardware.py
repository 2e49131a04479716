"""The corpus on a real GPU: the same kernels, the same expected values.

    python tests/sass/hardware.py pack FOLDER     here, where the compiler is
    python tests/sass/hardware.py run FOLDER      there, where an H200 and PyCUDA are

What is packed is machine code for compute capability 9.0.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE)]


def pack(folder: Path) -> None:
    """Write the cubin of each file of the corpus, with the names of its kernels there."""
    from gpusim.launch.grid import ComputeCapability
    from gpusim.sass import compiler, cubin

    arch = compiler.architecture(ComputeCapability(9, 0))
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((HERE / "corpus").glob("*.cu")):
        text = path.read_text(encoding="utf-8")
        made = compiler.compiled(text, str(path), [], arch, compiler.Options())
        (folder / f"{path.stem}.cubin").write_bytes(made.cubin)
        names = list(cubin.read(made.cubin, path.name).kernels)
        (folder / f"{path.stem}.json").write_text(json.dumps(names), encoding="utf-8")


class Gpu:
    """Launches kernels of packed cubins."""

    def __init__(self, folder: Path) -> None:
        import pycuda.autoinit
        import pycuda.driver as driver

        self.driver, self.folder, self.context = driver, folder, pycuda.autoinit.context
        self.modules: dict[str, Any] = {}

    def launch(
        self, name: str, args: tuple[Any, ...], grid: int, block: int, dynamic: int,
        variables: dict[str, Any],
    ) -> None:  # fmt: skip
        """Run a kernel; arrays hold the results."""
        of, _, kernel = name.partition(":")
        if of not in self.modules:
            self.modules[of] = self.driver.module_from_file(str(self.folder / f"{of}.cubin"))
        module = self.modules[of]
        for variable, value in variables.items():
            self.driver.memcpy_htod(module.get_global(variable)[0], value)
        names = json.loads((self.folder / f"{of}.json").read_text(encoding="utf-8"))
        symbol = next(n for n in names if n.startswith(f"_Z{len(kernel)}{kernel}"))
        given = [self._given(value) for value in args]
        module.get_function(symbol)(*given, grid=(grid, 1), block=(block, 1, 1), shared=dynamic)
        self.context.synchronize()

    def _given(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self.driver.InOut(value)
        if isinstance(value, np.float16):
            return value.view(np.uint16)  # PyCUDA has no format for it; its bits are passed alike
        return np.int32(value) if isinstance(value, int) else value


def run(folder: Path) -> int:
    """Run every test of the corpus on the GPU; return how many of them fail."""
    try:
        import pytest  # noqa: F401
    except ImportError:
        _stand_in_for_pytest()
    import test_corpus

    gpu = Gpu(folder)
    test_corpus.HARDWARE.append(gpu)
    failed = 0
    for name, test in sorted(vars(test_corpus).items()):
        if not name.startswith("test_"):
            continue
        try:
            test("9.0")
            print("ok    ", name)
        except Exception as error:
            failed += 1
            print("FAILED", name, type(error).__name__, str(error)[:500])
    print(f"{failed} failed")
    return failed


def _stand_in_for_pytest() -> None:
    def nothing(*_: Any, **__: Any) -> Any:
        return lambda function: function

    stand_in: Any = types.ModuleType("pytest")
    stand_in.mark = types.SimpleNamespace(skipif=nothing, slow=None)
    stand_in.fixture, stand_in.param, stand_in.FixtureRequest = nothing, nothing, object
    sys.modules["pytest"] = stand_in


if __name__ == "__main__":
    command, where = sys.argv[1:]
    sys.exit(pack(Path(where)) if command == "pack" else run(Path(where)))
