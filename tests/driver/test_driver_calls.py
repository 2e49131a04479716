"""Parts of the driver's API beside launches and copies: virtual memory, linking, earlier calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from driver.host import Host, needs_compilers

from gpusim.driver import images

pytestmark = needs_compilers


@pytest.fixture
def host(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Host:
    return Host(tmp_path, capfd)


VIRTUAL_MEMORY = """
class Where(C.Structure): _fields_ = [("kind", C.c_int), ("id", C.c_int)]
class Asked(C.Structure):
    _fields_ = [("kind", C.c_int), ("to", C.c_int), ("where", Where), ("rest", C.c_uint64 * 2)]
class Access(C.Structure): _fields_ = [("where", Where), ("flags", C.c_int)]
asked, both, size = Asked(1, 0, Where(1, 0)), Access(Where(1, 0), 3), C.c_size_t()
call("cuMemGetAllocationGranularity", C.byref(size), C.byref(asked), 0)
size = size.value
def create():
    made = C.c_uint64()
    call("cuMemCreate", C.byref(made), C.c_size_t(size), C.byref(asked), C.c_uint64(0))
    return made
def place(number): return C.c_uint64(base.value + number * size)
def map(number, handle):
    return call("cuMemMap", place(number), C.c_size_t(size), C.c_size_t(0), handle, C.c_uint64(0))
def unmap(number): return call("cuMemUnmap", place(number), C.c_size_t(size))
def allow(number, count):
    whole = C.c_size_t(count * size)
    return call("cuMemSetAccess", place(number), whole, C.byref(both), C.c_size_t(1))
base = C.c_uint64()
whole, none = C.c_size_t(4 * size), C.c_uint64(0)
call("cuMemAddressReserve", C.byref(base), whole, C.c_size_t(0), none, none)
"""


def test_neighbouring_mappings_are_one_array_and_keep_their_contents(host: Host) -> None:
    ran = host.run(
        VIRTUAL_MEMORY
        + """
first, second = create(), create()
map(0, first), map(1, second), allow(0, 2)
n = 2 * size // 4
launch("scale", 4, 32, place(0), take(4 * 128), C.c_int(128))
call("cuMemsetD32_v2", place(0), 0x40000000, C.c_size_t(n))
launch("scale", n // 256, 256, place(0), place(0), C.c_int(n))
print(struct.unpack("<4f", back(C.c_uint64(place(1).value - 8), 16)))
unmap(1)
print(struct.unpack("<f", back(place(0), 4)), back(place(1), 4))
map(2, second), allow(2, 1)
print(struct.unpack("<2f", back(C.c_uint64(place(3).value - 8), 8)))
found = C.c_uint64()
call("cuMemGetAccess", C.byref(found), C.byref(both), place(2)); print(found.value)
call("cuMemFree_v2", place(2)), map(2, first), map(0, second), map(4, create())
"""
    )
    assert ran.out == [
        "(6.0, 6.0, 6.0, 6.0)",
        "cuMemcpyDtoH_v2 1",
        "(6.0,) None",
        "(6.0, 6.0)",
        "3",
        *("cuMemFree_v2 1", "cuMemMap 1", "cuMemMap 1", "cuMemMap 1"),
    ]


def test_an_access_to_addresses_without_memory_is_a_fault(host: Host) -> None:
    ran = host.run(
        VIRTUAL_MEMORY
        + """
map(0, create())
launch("scale", 1, 32, place(0), take(128), C.c_int(32))
call("cuCtxSynchronize")
"""
    )
    assert ran.out == ["cuCtxSynchronize 700"]


def test_created_memory_has_one_place_and_counts_until_nobody_has_it(host: Host) -> None:
    ran = host.run(
        VIRTUAL_MEMORY
        + """
def room():
    free, total = C.c_size_t(), C.c_size_t()
    call("cuMemGetInfo_v2", C.byref(free), C.byref(total))
    return (total.value - free.value) // size
one = create(); print(room())
map(0, one), map(1, one), allow(0, 1), call("cuMemRelease", one); print(room())
unmap(0); print(room())
call("cuMemAddressFree", base, whole), call("cuMemAddressFree", base, whole)
"""
    )
    assert ran.out == ["1", "cuMemMap 801", "1", "0", "cuMemAddressFree 1"]
    assert "the program maps memory at two places at once" in ran.err


def test_linked_code_is_launched_by_the_earlier_calls_and_lines_of_arrays_are_copied(
    host: Host,
) -> None:
    ran = host.run(
        """
link, cubin, size, function = C.c_void_p(), C.c_void_p(), C.c_size_t(), C.c_void_p()
call("cuLinkCreate_v2", 0, None, None, C.byref(link))
call("cuLinkAddFile_v2", link, 0, sys.argv[1].encode(), 0, None, None)
call("cuLinkComplete", link, C.byref(cubin), C.byref(size))
call("cuModuleLoadData", C.byref(module), cubin)
call("cuLinkDestroy", link)
call("cuModuleGetFunction", C.byref(function), module, b"scale")
x = take(400); to(x, struct.pack("<100f", *range(100)))
call("cuFuncSetBlockShape", function, 32, 1, 1)
call("cuParamSetv", function, 0, C.byref(x), 8), call("cuParamSetv", function, 8, C.byref(x), 8)
call("cuParamSeti", function, 16, 100), call("cuParamSetSize", function, 20)
call("cuParamSeti", function, 20, 1)
call("cuLaunchGrid", function, 4, 1)
print(struct.unpack("<100f", back(x, 400)) == tuple(3.0 * k for k in range(100)))
class Size(C.Structure):
    _fields_ = [("width", C.c_size_t), ("height", C.c_size_t), ("format", C.c_int), ("n", C.c_uint)]
array, held = C.c_void_p(), C.create_string_buffer(8)
call("cuArrayCreate_v2", C.byref(array), C.byref(Size(8, 0, 1, 1)))
call("cuMemcpyHtoA_v2", array, C.c_size_t(0), b"abcdefgh", C.c_size_t(8))
call("cuMemcpyAtoA_v2", array, C.c_size_t(0), array, C.c_size_t(4), C.c_size_t(4))
call("cuMemcpyAtoH_v2", held, array, C.c_size_t(0), C.c_size_t(8))
print(held.raw)
"""
    )
    assert ran.out == ["cuParamSeti 1", "True", "b'efghefgh'"]


GRAPH = """
class Set(C.Structure):
    _fields_ = [("to", C.c_uint64), ("pitch", C.c_size_t), ("value", C.c_uint), ("item", C.c_uint),
                ("width", C.c_size_t), ("height", C.c_size_t)]
class Kernel(C.Structure):
    _fields_ = [("function", C.c_void_p), ("sizes", C.c_uint * 6), ("shared", C.c_uint),
                ("given", C.c_void_p), ("rest", C.c_void_p * 3)]
class Of(C.Union): _fields_ = [("bytes", C.c_char * 232), ("set", Set), ("kernel", Kernel)]
class Node(C.Structure): _fields_ = [("type", C.c_int), ("rest", C.c_int * 3), ("of", Of)]
class Host(C.Structure): _fields_ = [("call", C.c_void_p), ("given", C.c_void_p)]
Called = C.CFUNCTYPE(None, C.c_void_p)
says = [Called(lambda given, k=k: print("call", k)) for k in range(3)]
def calls(k): return C.byref(Host(C.cast(says[k], C.c_void_p), None))
function, graph, made = C.c_void_p(), C.c_void_p(), C.c_void_p()
call("cuModuleGetFunction", C.byref(function), module, b"scale")
call("cuGraphCreate", C.byref(graph), 0)
n, x, y = C.c_int(8), take(32), take(32)
values = (C.c_void_p * 3)(*(C.cast(C.pointer(one), C.c_void_p) for one in (y, x, n)))
kernel = Kernel(function, (1, 1, 1, 8, 1, 1), 0, C.cast(values, C.c_void_p))
sets, launches, host = C.c_void_p(), C.c_void_p(), C.c_void_p()
def add(node, one):
    call("cuGraphAddNode_v2", C.byref(node), graph, None, None, C.c_size_t(0), C.byref(one))
add(sets, Node(2, of=Of(set=Set(x.value, 0, 0x3F800000, 4, 8, 1))))
add(launches, Node(0, of=Of(kernel=kernel)))
call("cuGraphAddHostNode", C.byref(host), graph, None, C.c_size_t(0), calls(0))
gone = C.c_void_p()
call("cuGraphAddEmptyNode", C.byref(gone), graph, None, C.c_size_t(0))
call("cuGraphDestroyNode", gone)
owned = C.c_void_p()
call("cuUserObjectCreate", C.byref(owned), None, says[2], 1, 1)
call("cuGraphRetainUserObject", graph, owned, 1, 1)
call("cuGraphInstantiateWithFlags", C.byref(made), graph, C.c_uint64(0))
def replay():
    call("cuGraphLaunch", made, None)
    print(struct.unpack("<f", back(y, 4))[0])
replay()
"""


def test_nodes_of_a_graph_are_told_changed_and_switched_off(host: Host) -> None:
    ran = host.run(
        GRAPH
        + """
found, old = Kernel(), Set()
call("cuGraphKernelNodeGetParams_v2", launches, C.byref(found))
given = C.cast(found.given, C.POINTER(C.POINTER(C.c_uint64)))
print(list(found.sizes), given[0][0] == y.value, given[2][0] & 0xFFFFFFFF)
call("cuGraphMemsetNodeGetParams", sets, C.byref(old)); print(old.to == x.value, old.width)
old.value = 0x40000000
call("cuGraphExecMemsetNodeSetParams", made, sets, C.byref(old), context)
call("cuGraphExecHostNodeSetParams", made, host, calls(1)); replay()
call("cuGraphNodeSetEnabled", made, launches, 0)
call("cuMemsetD32_v2", y, 0, C.c_size_t(8)); replay()
call("cuGraphHostNodeSetParams", launches, calls(1))
call("cuGraphDestroy", graph), call("cuGraphExecDestroy", made)
"""
    )
    assert ran.out == [
        *("call 0", "3.0", "[1, 1, 1, 8, 1, 1] True 8", "True 8", "call 1", "6.0"),
        *("call 1", "0.0", "cuGraphHostNodeSetParams 1", "call 2"),
    ]


def test_functions_have_the_version_that_a_program_asks_for(host: Host) -> None:
    ran = host.run(
        """
def symbol(name, version):
    found, status = C.c_void_p(), C.c_int()
    call("cuGetProcAddress_v2", name, C.byref(found), version, C.c_uint64(0), C.byref(status))
    return found.value
def of(name): return C.cast(getattr(cuda, name), C.c_void_p).value
print(symbol(b"cuGraphInstantiate", 13000) == of("cuGraphInstantiateWithFlags"))
print(symbol(b"cuGraphInstantiate", 11040) == of("cuGraphInstantiate_v2"))
print(symbol(b"cuStreamGetCaptureInfo", 12000) == of("cuStreamGetCaptureInfo_v2"))
print(symbol(b"cuGraphAddNode", 12020) == of("cuGraphAddNode"))
word = take(8)
call("cuStreamWriteValue64_v2", None, word, C.c_uint64(1 << 33), 0)
for how, value in enumerate((5 << 32, 1 << 33, 3 << 33, 1)):
    print(call("cuStreamWaitValue64_v2", None, word, C.c_uint64(value), how))
launch("count", 1, 1)
call("cuGetExportTable", C.byref(C.c_void_p()), bytes(16))
"""
    )
    assert ran.out == [
        *["True"] * 4,
        "cuStreamWaitValue64_v2 801",
        "801",
        *"000",
        "cuGetExportTable 500",
    ]
    assert "a stream's wait for a word that is written later" in ran.err
    assert "a CUDA runtime in the program needs internal tables of the driver" in ran.err


def test_a_stream_writes_words_and_waits_for_those_that_are_there(host: Host) -> None:
    ran = host.run(
        """
class Work(C.Structure):
    _fields_ = [("kind", C.c_int), ("address", C.c_uint64), ("value", C.c_uint64),
                ("flags", C.c_uint), ("rest", C.c_uint64 * 2)]
def work(*all): return call("cuStreamBatchMemOp_v2", None, len(all), (Work * len(all))(*all), 0)
x = take(16)
call("cuMemsetD32_v2", x, 7, C.c_size_t(4))
AT_LEAST, EQUAL, AND, NOR = range(4)
first, second = x.value, x.value + 8
work(Work(2, first, 5 << 32 | 9), Work(6), Work(5, second, 1 << 40), Work(3))
print(struct.unpack("<2IQ", back(x, 16)))
work(Work(1, first, 8, AT_LEAST), Work(4, second, 1 << 40, EQUAL), Work(1, first, 1, AND))
work(Work(1, first, 10, AT_LEAST)), work(Work(2, first + 2, 1)), work(Work(9, first, 1)), work()
"""
    )
    assert ran.out == [
        "(9, 7, 1099511627776)",
        *("cuStreamBatchMemOp_v2 801", "cuStreamBatchMemOp_v2 1"),
        *("cuStreamBatchMemOp_v2 1", "cuStreamBatchMemOp_v2 1"),
    ]
    assert "a stream's wait for a word that is written later" in ran.err


PARTS = (
    """
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) doubled (.param .b32 x);
.visible .entry scales(.param .u64 to)
{
    .reg .b64 %a<3>;
    .reg .b32 %v<3>;
    ld.param.u64 %a1, [to];
    cvta.to.global.u64 %a2, %a1;
    ld.global.u32 %v1, [%a2];
    { .param .b32 x; .param .b32 r; st.param.b32 [x], %v1;
      call.uni (r), doubled, (x); ld.param.b32 %v2, [r]; }
    st.global.u32 [%a2], %v2;
    ret;
}
""",
    """
.version 8.0
.target sm_90
.address_size 64
.visible .func (.param .b32 r) doubled (.param .b32 x)
{
    .reg .b32 %v<3>;
    ld.param.b32 %v1, [x];
    add.u32 %v2, %v1, %v1;
    st.param.b32 [r], %v2;
    ret;
}
""",
)


@pytest.mark.skipif(images._tool("nvlink") is None, reason="needs nvlink")
def test_several_parts_are_linked_to_one_module(host: Host) -> None:
    ran = host.run(
        f"parts = {PARTS!r}"
        + """
def link(*parts):
    made, cubin, size, module = C.c_void_p(), C.c_void_p(), C.c_size_t(), C.c_void_p()
    call("cuLinkCreate_v2", 0, None, None, C.byref(made))
    for text in parts:
        held = text.encode()
        call("cuLinkAddData_v2", made, 1, held, C.c_size_t(len(held) + 1), b"part", 0, None, None)
    if not call("cuLinkComplete", made, C.byref(cubin), C.byref(size)):
        call("cuModuleLoadData", C.byref(module), cubin)
    call("cuLinkDestroy", made)
    return module
x = take(4)
to(x, struct.pack("i", 21))
module = link(*parts)
launch("scales", 1, 1, x)
print(struct.unpack("i", back(x, 4)))
link(parts[0], parts[0], parts[1])
"""
    )
    assert ran.out == ["(42,)", "cuLinkComplete 200"]
    assert "nvlink refuses parts" in ran.err
