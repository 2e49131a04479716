"""A program that calls CUDA's driver runs as it is, in a process of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from driver.host import KERNELS, Host, cubin, needs_compilers

import gpusim
from gpusim.launch.grid import ComputeCapability
from gpusim.sass import compiler
from gpusim.sass.kernels import CubinFile

pytestmark = needs_compilers
HOPPER = ComputeCapability(9, 0)


@pytest.fixture
def host(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Host:
    return Host(tmp_path, capfd)


SCALE = """
x, y = take(400), take(400)
to(x, struct.pack("100f", *range(100)))
launch("scale", 2, 64, y, x, C.c_int(100))
print(struct.unpack("100f", back(y, 400))[99])
"""


def test_a_kernel_reads_and_writes_what_the_host_copies(host: Host) -> None:
    ran = host.run(SCALE)
    assert (ran.code, ran.out) == (0, ["297.0"])
    assert re.search(r"gpusim: +1  scale  2 blocks of 64", ran.err)
    assert "1 launch of 1 kernel on H200 (simulated)" in ran.err
    assert ran.err.startswith("gpusim: a simulated H200 in the place of CUDA's driver")


def test_variables_have_addresses_and_keep_what_kernels_and_host_write(host: Host) -> None:
    ran = host.run(
        """
where, size = C.c_uint64(), C.c_size_t()
call("cuModuleGetGlobal_v2", C.byref(where), C.byref(size), module, b"counter")
launch("count", 1, 32); launch("count", 2, 1)
print(size.value, struct.unpack("i", back(where, 4))[0])
call("cuModuleGetGlobal_v2", C.byref(where), C.byref(size), module, b"factor")
to(where, struct.pack("f", 2.0))
"""
        + SCALE,
    )
    assert ran.out == ["4 39", "198.0"]


def test_pointers_in_memory_are_followed(host: Host) -> None:
    ran = host.run(
        """
first, second, total = take(16), take(16), take(4)
to(first, struct.pack("Qi", second.value, 30)); to(second, struct.pack("Qi", 0, 12))
to(total, bytes(4))
launch("follow", 1, 1, first, total)
print(struct.unpack("i", back(total, 4))[0])
""",
    )
    assert ran.out == ["42"]


def test_a_fault_ends_the_context_with_the_status_of_a_gpu(host: Host) -> None:
    ran = host.run(
        """
out = take(400)
print("launched", launch("beyond", 1, 1, out))
call("cuCtxSynchronize")
call("cuMemFree_v2", out)
""",
    )
    assert ran.out == ["launched 0", "cuCtxSynchronize 700", "cuMemFree_v2 700"]
    assert "byte 4000000 of arg0 is out of bounds: arg0 has 400 bytes" in ran.err
    said = " ".join(ran.err.split())
    assert "launch 1 of beyond ended in a fault: OutOfBounds: line 9: byte 4000000 of arg0" in said
    assert (ran.code, "the program still ends with code 0" in said) == (0, True)


def test_an_access_to_freed_memory_is_called_one(host: Host) -> None:
    ran = host.run(
        """
out, kept = take(4000400), take(400)
call("cuMemFree_v2", out)
launch("beyond", 1, 1, out)
""",
        "trace",
    )
    assert "was freed before" in ran.err
    assert ran.code == 1


def test_memory_of_malloc_outlives_the_kernel(host: Host) -> None:
    ran = host.run(
        """
out = take(256)
launch("makes", 1, 64); launch("uses", 1, 64, out); launch("drops", 1, 64)
print(struct.unpack("64i", back(out, 256))[63])
""",
    )
    assert (ran.code, ran.out) == (0, ["126"])


def test_kernels_print_to_the_programs_output(host: Host) -> None:
    assert host.run('launch("prints", 2, 1)').out == ["block 0 of 2", "block 1 of 2"]


def test_a_failed_assertion_is_printed_as_cuda_does_and_the_context_is_over(host: Host) -> None:
    ran = host.run(
        """
x = take(256)
to(x, struct.pack("64i", *(-(k in (3, 40)) for k in range(64))))
launch("asserts", 2, 64, x)
call("cuCtxSynchronize")
call("cuMemFree_v2", x)
""",
    )
    assert [line for line in ran.out if line != "before"] == [
        "cuCtxSynchronize 710", "cuMemFree_v2 710",
    ]  # fmt: skip
    assert "before" in ran.out
    (line,) = re.findall(r"^kernels.cu:.*thread: \[3,0,0\].*", ran.err, re.MULTILINE)[:1]
    assert re.fullmatch(
        r"kernels.cu:\d+: void asserts\(.*\): block: \[0,0,0\], thread: \[3,0,0\] Assertion "
        r"`x\[threadIdx.x\] >= 0` failed.",
        line,
    )


def test_a_trap_ends_the_context_with_a_launch_failure(host: Host) -> None:
    ran = host.run('launch("traps", 1, 32); call("cuCtxSynchronize")')
    assert ran.out == ["cuCtxSynchronize 719"]
    assert "with a trap (block 0, thread 5)" in ran.err


def test_clocks_of_kernels_go_on(host: Host) -> None:
    ran = host.run(
        """
x = take(48)
launch("times", 1, 1, x)
a, b, c, d, begin, end = struct.unpack("6Q", back(x, 48))
print(begin < a < c < end, b < d)
""",
    )
    assert ran.out == ["True True"]


def test_a_kernel_that_only_waits_for_a_clock_ends_soon(host: Host) -> None:
    ran = host.run(
        """
x = take(32)
for ticks in (100, 100_000_000):
    launch("waits", 4, 32, x, C.c_int64(ticks))
    print([ticks <= one < 2 * ticks + 4000 for one in struct.unpack("4q", back(x, 32))])
""",
    )
    assert ran.out == [str([True] * 4)] * 2


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ('call("cuMemFree_v2", C.c_uint64(12345))', 1, "where no allocation begins"),
        ('x = take(8); call("cuMemFree_v2", x); call("cuMemFree_v2", x)', 1, "is freed twice"),
        ("x = take(8); to(x, bytes(9))", 1, "an allocation of 8 bytes, from its byte 0 on"),
        ('call("cuMipmappedArrayDestroy", None)', 801, "the program needs cuMipmappedArrayDe"),
        ('call("cuModuleLoadData", C.byref(module), b"nonsense")', 200, "neither a cubin"),
        ('launch("scale", 1, 2048)', 1, ""),
        ('launch("nothing", 1, 1)', 500, ""),
    ],
)
def test_what_cannot_be_has_cudas_status_and_a_line(
    host: Host, text: str, status: int, words: str
) -> None:
    ran = host.run(text)
    assert str(status) in ran.out[0].split()
    assert words in ran.err


REFUSED = """
x = take(4)
launch("gathers", 1, 1, x, C.c_uint64(0))
print(back(x, 4))
"""


def test_a_launch_that_is_not_simulated_leaves_the_context_alive(host: Host) -> None:
    ran = host.run(REFUSED)
    assert ran.code == 2
    assert ran.out == ["cuLaunchKernel 801", str(bytes(4))]
    assert "--device" not in ran.err


def test_with_the_runtime_a_launch_that_is_not_simulated_leaves_no_results(host: Host) -> None:
    """A kernel<<<...>>> returns nothing, so that a program may take what is there for a result."""
    ran = host.run('cuda.gpusim_tell(b"runtime", None, C.c_size_t(0))' + REFUSED)
    assert ran.code == 2
    assert ran.out == ["cuLaunchKernel 801", "cuMemcpyDtoH_v2 801", "None"]


def test_a_refused_unit_of_hopper_names_a_device_without_it(host: Host) -> None:
    text = """
extern "C" __global__ void products(float *out) {
    float d[4] = {};
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0,%1,%2,%3},"
                 " %4, %4, %5, 0, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(0ull), "r"(0));
    out[0] = d[0];
}
"""
    made = compiler.compiled(text, "products.cu", [], "sm_90a").cubin
    ran = host.run('launch("products", 1, 128, take(4))', made=made)
    assert ran.out == ["cuLaunchKernel 801"]
    assert "(wgmma) in this form are not simulated" in ran.err
    assert "compilers do without for --device a100-40gb" in ran.err


def test_a_launch_that_may_begin_before_the_end_of_another_sees_its_results(host: Host) -> None:
    assert {"ACQBULK", "PREEXIT"} <= {
        row.mnemonic for row in CubinFile(cubin(), "").code("depends", HOPPER).section.rows
    }
    ran = host.run(
        """
kernel = C.c_void_p()
call("cuModuleGetFunction", C.byref(kernel), module, b"depends")
early = struct.pack("i4xi60x", 6, 1)  # programmatic stream serialization
held = C.create_string_buffer(early)
launching = struct.pack("7I4xQQI", 1, 1, 1, 32, 1, 1, 0, 0, C.addressof(held), 1)
x = take(128)
to(x, struct.pack("32i", *range(32)))
for add in (1, 3):
    values = C.c_uint64(x.value), C.c_int(add)
    given = (C.c_void_p * 2)(*(C.cast(C.pointer(one), C.c_void_p) for one in values))
    call("cuLaunchKernelEx", launching, kernel, given, None)
print(struct.unpack("32i", back(x, 128))[31])
"""
    )
    assert ran.out == [str(2 * (2 * 31 + 1) + 3)]


def test_a_launch_gives_the_size_of_its_clusters(host: Host) -> None:
    """Four blocks in clusters of 1, 2 and 4; they are no multiple of 3."""
    ran = host.run(
        """
kernel, x = C.c_void_p(), take(16)
call("cuModuleGetFunction", C.byref(kernel), module, b"ranks")
values = C.c_uint64(x.value)
given = (C.c_void_p * 1)(C.cast(C.pointer(values), C.c_void_p))
for size in (1, 2, 4, 3):
    held = C.create_string_buffer(struct.pack("i4x3I52x", 4, size, 1, 1))  # cluster dimension
    launching = struct.pack("7I4xQQI", 4, 1, 1, 32, 1, 1, 0, 0, C.addressof(held), 1)
    call("cuLaunchKernelEx", launching, kernel, given, None)
    print(*struct.unpack("4i", back(x, 16)))
value = C.c_int()
call("cuDeviceGetAttribute", C.byref(value), 120, 0)
print(value.value)
"""
    )
    assert ran.out == [
        "100 100 100 100",
        "200 201 200 201",
        "400 401 402 403",
        "cuLaunchKernelEx 912",
        "400 401 402 403",
        "1",
    ]


ARRAYS = """
def array():
    made = C.c_void_p()
    call("cuArray3DCreate_v2", C.byref(made), struct.pack("3QiII", 8, 3, 0, 32, 1, 2))
    return made
def side(kind, memory=0, made=0, pitch=0):
    host, device = (memory, 0) if kind == 1 else (0, memory)
    return struct.pack("2QiQQQQ", 0, 0, kind, host, device, made, pitch)
def copy(source, target):
    return call("cuMemcpy2D_v2", source + target + struct.pack("2Q", 32, 3))
source, target = array(), array()
held = (C.c_float * 24)(*range(24))
copy(side(1, C.addressof(held), pitch=32), side(3, made=source.value))
from_array = struct.pack("i4xQ", 0, source.value) + bytes(128)
to_array = struct.pack("i4xQ", 0, target.value) + bytes(128)
texture, surface, x = C.c_uint64(), C.c_uint64(), take(32)
how = struct.pack("5iIi3f4f12i", 1, 1, 1, 1, 0, 0, 0, *([0.0] * 7), *([0] * 12))
call("cuTexObjectCreate", C.byref(texture), from_array, how, None)
call("cuSurfObjectCreate", C.byref(surface), to_array)
"""


def test_a_texture_interpolates_and_a_surface_is_written(host: Host) -> None:
    ran = host.run(
        ARRAYS
        + """
launch("samples", 1, 8, x, texture, surface)
print(struct.unpack("8f", back(x, 32)))
copy(side(3, made=target.value), side(1, C.addressof(held), pitch=32))
print(held[:9])
call("cuTexObjectDestroy", texture)
launch("samples", 1, 1, x, texture, surface)
call("cuCtxSynchronize")
"""
    )
    between = [8 + 0.25, 9.25, 10.25, 11.25, 12.25, 13.25, 14.25, 15.0]  # the last one is clamped
    assert ran.out == [
        str(tuple(between)), str([*(2 * one for one in between), 0.0]), "cuCtxSynchronize 700",
    ]  # fmt: skip
    assert "is not a texture or surface object (block 0, thread 0)" in ran.err


def test_a_launch_with_textures_runs_but_has_no_time(host: Host) -> None:
    ran = host.run(ARRAYS + 'launch("samples", 1, 8, x, texture, surface)', "predict")
    assert ran.code == 2
    assert "how long they take is not simulated" in ran.err
    assert not [line for line in ran.out if line.startswith("cu")]


def test_what_a_surface_holds_has_a_value(host: Host) -> None:
    ran = host.run(
        ARRAYS
        + """
launch("samples", 1, 8, x, texture, surface)
copy(side(3, made=target.value), side(1, C.addressof(held), pitch=32))
""",
        "check",
    )
    assert (ran.code, "uninitialised" in ran.err) == (0, False)


def test_the_occupancy_of_code_that_is_not_simulated_is_refused_in_a_sentence(host: Host) -> None:
    ran = host.run(
        """
kernel, blocks = C.c_void_p(), C.c_int()
call("cuModuleGetFunction", C.byref(kernel), module, b"gathers")
call("cuOccupancyMaxActiveBlocksPerMultiprocessor", C.byref(blocks), kernel, 32, C.c_size_t(0))
"""
    )
    assert ran.out == ["cuOccupancyMaxActiveBlocksPerMultiprocessor 801"]
    assert "gathers, gradients and queries of textures are not simulated" in ran.err
    assert "internal error" not in ran.err


def test_what_is_not_simulated_is_exit_code_2_and_the_programs_own_code_goes_first(
    host: Host,
) -> None:
    assert host.run('call("cuMipmappedArrayDestroy", None)').code == 2
    assert host.run('call("cuMipmappedArrayDestroy", None); sys.exit(7)').code == 7


def test_a_check_of_a_program_finds_races_and_has_exit_code_1(host: Host) -> None:
    ran = host.run('launch("race", 1, 64, take(256))', "check")
    assert ran.code == 1
    assert "1 finding" in ran.err


def test_events_around_a_launch_say_what_is_predicted(host: Host) -> None:
    ran = host.run(
        """
x, y = take(4 << 20), take(4 << 20)
first, last = C.c_void_p(), C.c_void_p()
call("cuEventCreate", C.byref(first), 0); call("cuEventCreate", C.byref(last), 0)
for turn in range(2):
    call("cuEventRecord", first, None)
    launch("scale", 4096, 256, y, x, C.c_int(1 << 20))
    call("cuEventRecord", last, None); call("cuEventSynchronize", last)
    taken = C.c_float(); call("cuEventElapsedTime", C.byref(taken), first, last)
    print(taken.value)
""",
        *("predict", "--json", "--out", str(host.folder / "out.json")),
    )
    launches = json.loads((host.folder / "out.json").read_text())["launches"]
    assert [one["time_us"] for one in launches] == pytest.approx([1e3 * float(t) for t in ran.out])
    for one in launches:
        assert one["kernel_us"] == pytest.approx(one["time_us"] - 2.64)
        low, high = one["interval_us"]
        assert 0 < low < one["kernel_us"] < high


def test_only_launches_that_are_chosen_are_counted(host: Host) -> None:
    out = host.folder / "out.json"
    text = SCALE + 'launch("count", 1, 32)\n' * 4
    host.run(text, "trace", "--launch", "3..4", "--json", "--out", str(out))
    counted = [
        one["number"] for one in json.loads(out.read_text())["launches"] if "counters" in one
    ]
    assert counted == [3, 4]


def test_a_captured_graph_is_replayed(host: Host) -> None:
    ran = host.run(
        """
stream, graph, ready = C.c_void_p(), C.c_void_p(), C.c_void_p()
call("cuStreamCreate", C.byref(stream), 1)
call("cuStreamBeginCapture_v2", stream, 0)
launch("count", 1, 32, stream=stream)
call("cuStreamEndCapture", stream, C.byref(graph))
call("cuGraphInstantiateWithFlags", C.byref(ready), graph, C.c_uint64(0))
for turn in range(3): call("cuGraphLaunch", ready, stream)
where = C.c_uint64()
call("cuModuleGetGlobal_v2", C.byref(where), None, module, b"counter")
print(struct.unpack("i", back(where, 4))[0])
""",
    )
    assert ran.out == [str(5 + 3 * 32)]


def test_memory_that_the_host_registers_is_the_devices_too(host: Host) -> None:
    ran = host.run(
        """
import mmap
held = mmap.mmap(-1, 8192); array = (C.c_float * 100).from_buffer(held, 512)
array[99] = 7
call("cuMemHostRegister_v2", C.byref(array), C.c_size_t(400), 0)
y = take(400)
launch("scale", 2, 64, y, C.c_uint64(C.addressof(array)), C.c_int(100))
call("cuMemHostUnregister", C.byref(array))
print(struct.unpack("100f", back(y, 400))[99], array[99])
""",
    )
    assert ran.out == ["21.0 7.0"]


def test_a_launch_within_a_program_is_what_it_is_by_hand(host: Host) -> None:
    """Counters and times do not depend on the way in which a kernel is launched."""
    out = host.folder / "out.json"
    n = 1 << 16
    host.run(
        f"""
y, x = take(4 * {n}), take(4 * {n})
launch("scale", {n // 256}, 256, y, x, C.c_int({n}))
""",
        *("report", "--json", "--out", str(out)),
    )
    (launch,) = json.loads(out.read_text())["launches"]
    x, y = np.zeros(n, np.float32), np.zeros(n, np.float32)
    configured = gpusim.cuda_source(KERNELS)["scale"][n // 256, 256]
    assert launch["counters"] == gpusim.trace(configured, y, x, n).counters
    assert launch["time_us"] == pytest.approx(gpusim.predict(configured, y, x, n).time_us, rel=1e-3)


GRAPH = """
class Kernel(C.Structure):
    _fields_ = [("function", C.c_void_p), ("sizes", C.c_uint * 6), ("shared", C.c_uint),
                ("given", C.c_void_p), ("extra", C.c_void_p), ("kernel", C.c_void_p),
                ("context", C.c_void_p)]
class Memory(C.Structure):
    _fields_ = [("pool", C.c_char * 88), ("accesses", C.c_void_p), ("count", C.c_size_t),
                ("size", C.c_size_t), ("address", C.c_uint64)]
def of_scale(*values):
    kernel, own = C.c_void_p(), Kernel()
    call("cuModuleGetFunction", C.byref(kernel), module, b"scale")
    own.held = values
    own.kept = (C.c_void_p * 3)(*(C.cast(C.pointer(v), C.c_void_p) for v in values))
    own.function, own.sizes[:] = kernel, [1, 1, 1, 100, 1, 1]
    own.given = C.cast(own.kept, C.c_void_p)
    return own
def one_of(name, graph, *values):
    node = C.c_void_p()
    call(name, C.byref(node), graph, None, C.c_size_t(0), *values)
    return node
graph, child, made = C.c_void_p(), C.c_void_p(), C.c_void_p()
call("cuGraphCreate", C.byref(graph), 0)
call("cuGraphCreate", C.byref(child), 0)
x, y, other = take(400), take(400), take(400)
to(x, struct.pack("100f", *range(100))); to(other, struct.pack("100f", *[1] * 100))
memory = Memory(size=400)
one_of("cuGraphAddMemAllocNode", graph, C.byref(memory))
between = C.c_uint64(memory.address)
first = one_of("cuGraphAddKernelNode_v2", graph, C.byref(of_scale(between, x, C.c_int(100))))
one_of("cuGraphAddKernelNode_v2", child, C.byref(of_scale(y, between, C.c_int(100))))
one_of("cuGraphAddChildGraphNode", graph, child)
one_of("cuGraphAddMemFreeNode", graph, between)
call("cuGraphInstantiateWithFlags", C.byref(made), graph, C.c_uint64(0))
def ends_with():
    call("cuGraphLaunch", made, None)
    return struct.unpack("100f", back(y, 400))[99]
print(ends_with(), ends_with())
changed = of_scale(between, other, C.c_int(100))
call("cuGraphExecKernelNodeSetParams_v2", made, first, C.byref(changed))
print(ends_with())
print(call("cuGraphExecUpdate_v2", made, graph, None), ends_with())
print(call("cuGraphExecUpdate_v2", made, child, None))
"""


def test_graphs_take_memory_hold_children_and_are_updated(host: Host) -> None:
    ran = host.run(GRAPH)
    assert ran.out == ["891.0 891.0", "9.0", "0 891.0", "cuGraphExecUpdate_v2 910", "910"]
