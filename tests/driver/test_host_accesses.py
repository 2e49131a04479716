"""The host and device memory: what a GPU ends by SIGSEGV, and what the host may share."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from driver.host import Host, needs_compilers

pytestmark = [needs_compilers]


@pytest.fixture
def host(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Host:
    return Host(tmp_path, capfd)


@pytest.mark.parametrize("access", ["print(word.value)", "word.value = 1"], ids=["read", "write"])
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_host_that_follows_a_device_pointer_ends_by_a_signal(
    host: Host, access: str, command: str
) -> None:
    ran = host.run(
        f"""
out = take(256)
word = C.c_int.from_address(out.value)
{access}
print("not reached")
""",
        command,
    )
    assert ran.code in (-signal.SIGSEGV, 128 + signal.SIGSEGV)
    assert ran.out[:1] != ["0"]
    assert "not reached" not in ran.out
    said = " ".join(ran.err.split())
    assert "gpusim: the host accesses device memory" in said
    assert "cudaMallocManaged" in said


def test_managed_and_pinned_memory_is_shared_with_the_host(host: Host) -> None:
    ran = host.run(
        """
managed, pinned = C.c_uint64(), C.c_void_p()
call("cuMemAllocManaged", C.byref(managed), C.c_size_t(256), 1)
call("cuMemHostAlloc", C.byref(pinned), C.c_size_t(256), 0)
held, own = ((C.c_float * 64).from_address(at.value) for at in (managed, pinned))
own[:] = range(64)
launch("scale", 1, 64, managed, C.c_uint64(pinned.value), C.c_int(64))
call("cuCtxSynchronize")
print(held[63])
call("cuMemFree_v2", managed)
out = take(256)
call("cuMemcpyHtoD_v2", out, pinned, C.c_size_t(256))
launch("scale", 1, 64, out, out, C.c_int(64))
print(struct.unpack("64f", back(out, 256))[63])
"""
    )
    assert (ran.code, ran.out) == (0, ["189.0", "189.0"])


def test_a_stream_that_is_destroyed_takes_no_work(host: Host) -> None:
    """CUDA_ERROR_INVALID_HANDLE is 400."""
    ran = host.run(
        """
stream, event, out = C.c_void_p(), C.c_void_p(), take(256)
call("cuEventCreate", C.byref(event), 0)
call("cuStreamCreate", C.byref(stream), 0)
launch("scale", 1, 64, out, out, C.c_int(64), stream=stream)
call("cuStreamDestroy_v2", stream)
launch("scale", 1, 64, out, out, C.c_int(64), stream=stream)
call("cuMemsetD8Async", out, 0, C.c_size_t(256), stream)
call("cuStreamSynchronize", stream)
call("cuStreamQuery", stream)
call("cuEventRecord", event, stream)
call("cuStreamWaitEvent", stream, event, 0)
call("cuStreamDestroy_v2", stream)
call("cuCtxSynchronize")
"""
    )
    assert ran.out == [
        f"{name} 400"
        for name in (
            "cuLaunchKernel", "cuMemsetD8Async", "cuStreamSynchronize", "cuStreamQuery",
            "cuEventRecord", "cuStreamWaitEvent", "cuStreamDestroy_v2",
        )
    ]  # fmt: skip
