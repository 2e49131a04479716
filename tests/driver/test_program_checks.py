"""`gpusim check` of a program: errors beside its kernels', and nothing where there is none."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from driver.host import Host, needs_compilers

from gpusim.cli.app import main
from gpusim.driver import nvcc
from gpusim.errors import InputError

# Defects of `defects.cu` with the severity of their finding.
DEFECTS = {
    "use-after-free": ("use-after-free", 1),
    "free": ("free", 1),
    "leak": ("leak", 0),
    "copy-bounds": ("copy-bounds", 1),
    "uninitialised-copy": ("uninitialised-copy", 0),
    "uninitialised": ("uninitialised", 1),
    "unasked-error": ("unasked-error", 0),
    "stream-race": ("stream-race", 1),
    "copy-race": ("stream-race", 1),
    "host-race": ("host-race", 1),
    "pinned-race": ("host-race", 1),
}
OF_NUMBA = ("stream-race", "uninitialised", "uninitialised-copy", "host-race", "pinned-race")
OF_CUDA_CORE = ("stream-race", "uninitialised", "host-race", "free")


def _has_nvcc() -> bool:
    try:
        return nvcc.compiler().is_file()
    except InputError:
        return False


def rules(command: list[str], out: Path) -> tuple[int, list[str]]:
    """Return the exit code of a check and the rules of its findings."""
    code = main(["check", "--json", "--out", str(out), *command])
    document = json.loads(out.read_text())
    found = list(document["findings"])
    for launch in document["launches"]:
        found += launch["check"]["findings"]
    return code, [one["rule"] for one in found]


@needs_compilers
def test_a_program_that_races_with_streams_and_host_is_told_both(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    host, out = Host(tmp_path, capfd), tmp_path / "out.json"
    ran = host.run(
        """
def stream():
    made = C.c_void_p()
    call("cuStreamCreate", C.byref(made), 0)
    return made
one, two = stream(), stream()
x, y, z, m, pinned = take(400), take(400), take(400), C.c_uint64(), C.c_void_p()
call("cuMemAllocManaged", C.byref(m), C.c_size_t(400), 1)
call("cuMemHostAlloc", C.byref(pinned), C.c_size_t(400), 0)
held = (C.c_float * 100).from_address(m.value)
for k in range(100): held[k] = k
to(x, bytes(400))
launch("scale", 2, 64, y, x, C.c_int(100), stream=one)
launch("scale", 2, 64, z, y, C.c_int(100), stream=two)       # y: streams race
call("cuCtxSynchronize")
launch("scale", 2, 64, y, m, C.c_int(100), stream=one)
print(held[1])                                               # both read
call("cuCtxSynchronize")
launch("scale", 2, 64, m, x, C.c_int(100), stream=one)
print(held[1])                                               # the host reads too early
call("cuStreamSynchronize", one)
held[2] = 7
call("cuMemcpyHtoDAsync_v2", x, pinned, C.c_size_t(400), one)
C.c_int.from_address(pinned.value).value = 1                 # the host writes too early
call("cuCtxSynchronize")
""",
        *("check", "--json", "--out", str(out)),
    )
    assert (ran.code, ran.out) == (1, ["1.0", "0.0"])
    found = json.loads(out.read_text())["findings"]
    assert [one["rule"] for one in found] == ["stream-race", "host-race", "host-race"]
    assert "launch 1 of scale on stream 1 (line 6) writes it and launch 2" in found[0]["message"]
    assert "the host reads byte 4 of an allocation of 400 bytes" in found[1]["message"]
    assert "the host writes byte 0" in found[2]["message"]
    assert "a race between streams  [stream-race]" in ran.err
    assert "\n  :" not in ran.err  # the lines of a file that is not there


@needs_compilers
def test_memory_without_values_is_told_to_kernels_and_copies(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    text = """
x, y, z = take(400), take(400), take(400)
to(x, bytes(200))
launch("scale", 1, 64, y, x, C.c_int(50))
back(y, 200)
back(y, 204)
launch("scale", 1, 64, z, x, C.c_int(51))
"""
    ran = Host(tmp_path, capfd).run(text, "check", "--json", "--out", str(out))
    document = json.loads(out.read_text())
    assert [one["rule"] for one in document["findings"]] == ["uninitialised-copy"]
    assert "reads 4 uninitialised bytes" in document["findings"][0]["message"]
    first, second = (one["check"]["findings"] for one in document["launches"])
    assert first == []
    assert [(one["rule"], one["index"]) for one in second] == [("uninitialised", 50)]
    assert ran.code == 1


@needs_compilers
def test_an_access_to_freed_memory_has_a_rule_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = Host(tmp_path, capfd).run(
        """
x, y = take(400), take(400)
to(x, bytes(400))
call("cuMemFree_v2", y)
launch("scale", 1, 64, y, x, C.c_int(64))
""",
        "check",
    )
    assert ran.code == 1
    assert "byte 0 of a freed allocation of 400 bytes" in " ".join(ran.err.split())


@pytest.mark.slow
@pytest.mark.skipif(not _has_nvcc(), reason=f"needs nvcc: {nvcc.INSTALL}")
@pytest.mark.parametrize("name", DEFECTS)
def test_each_defect_of_cuda_cpp_is_found_and_its_twin_is_clean(name: str, tmp_path: Path) -> None:
    file, out = Path(__file__).with_name("defects.cu"), tmp_path / "out.json"
    rule, code = DEFECTS[name]
    assert rules([str(file), "--", name, "1"], out) == (code, [rule])
    assert rules([str(file), "--", name, "0"], out) == (0, [])


def of(package: str, names: tuple[str, ...]) -> list[object]:
    there = importlib.util.find_spec(package.partition(".")[0]) is not None
    missing = not there or importlib.util.find_spec(package) is None
    marks = pytest.mark.skipif(missing, reason=f"needs {package}: pip install '.[programs]'")
    file = f"defects_{package.replace('.', '_')}.py"
    return [pytest.param(file, name, marks=marks, id=f"{package}-{name}") for name in names]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "name"), [*of("numba_cuda", OF_NUMBA), *of("cuda.core", OF_CUDA_CORE)]
)
def test_each_defect_of_a_package_is_found_and_its_twin_is_clean(
    file: str, name: str, tmp_path: Path
) -> None:
    program, out = str(Path(__file__).with_name(file)), tmp_path / "out.json"
    rule = "stream-race" if name == "free" else DEFECTS[name][0]
    assert set(rules(["--", sys.executable, program, name, "1"], out)[1]) == {rule}
    assert rules(["--", sys.executable, program, name, "0"], out) == (0, [])
