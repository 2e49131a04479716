"""Conditional nodes of graphs, and the memory that graphs hold."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from driver.host import Host, needs_compilers
from driver.test_builds import has_nvcc

from gpusim.cli.app import main
from gpusim.sass import compiler

pytestmark = needs_compilers

KERNELS = """
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);
extern "C" __global__ void chooses(unsigned long long handle, const int *x) {
    cudaGraphSetConditional(handle, *x);
}
extern "C" __global__ void counts_down(unsigned long long handle, int *x, int *steps) {
    ++*steps;
    cudaGraphSetConditional(handle, --*x);
}
extern "C" __global__ void adds(int *x, int by) { *x += by; }
"""
PROLOGUE = """
class Kernel(C.Structure):
    _fields_ = [("function", C.c_void_p), ("sizes", C.c_uint * 6), ("shared", C.c_uint),
                ("given", C.c_void_p), ("rest", C.c_void_p * 3)]
class Condition(C.Structure):
    _fields_ = [("handle", C.c_uint64), ("type", C.c_int), ("size", C.c_uint),
                ("bodies", C.POINTER(C.c_void_p)), ("context", C.c_void_p)]
class Of(C.Union):
    _fields_ = [("bytes", C.c_char * 232), ("kernel", Kernel), ("condition", Condition)]
class Node(C.Structure): _fields_ = [("type", C.c_int), ("rest", C.c_int * 3), ("of", Of)]
IF, WHILE, SWITCH = range(3)
held = []
def new_graph():
    graph = C.c_void_p()
    call("cuGraphCreate", C.byref(graph), 0)
    return graph
def add(graph, given):
    node = C.c_void_p()
    call("cuGraphAddNode_v2", C.byref(node), graph, None, None, C.c_size_t(0), C.byref(given))
    return node
def of_kernel(name, *values):
    function = C.c_void_p()
    call("cuModuleGetFunction", C.byref(function), module, name.encode())
    given = (C.c_void_p * len(values))(*(C.cast(C.pointer(v), C.c_void_p) for v in values))
    held.append((given, values))
    return Kernel(function, (1,) * 6, 0, C.cast(given, C.c_void_p))
def add_kernel(graph, name, *values):
    return add(graph, Node(0, of=Of(kernel=of_kernel(name, *values))))
def handle_of(graph, first=0, flags=0):
    handle = C.c_uint64()
    call("cuGraphConditionalHandleCreate", C.byref(handle), graph, None, first, flags)
    return handle
def add_condition(graph, handle, type, size):
    given = Node(13, of=Of(condition=Condition(handle.value, type, size)))
    add(graph, given)
    bodies = given.of.condition.bodies
    return [C.c_void_p(bodies[k]) for k in range(size)] if bodies else []
def ready(graph):
    made = C.c_void_p()
    call("cuGraphInstantiateWithFlags", C.byref(made), graph, C.c_uint64(0))
    return made
def replay(made, address, value):
    to(address, struct.pack("i", value)); call("cuGraphLaunch", made, None)
def number(address): return struct.unpack("i", back(address, 4))[0]
x, y = take(4), take(4)
call("cuMemsetD32_v2", y, 0, C.c_size_t(1))
"""


@cache
def code() -> bytes:
    """Return the kernels' machine code for an H200."""
    return compiler.compiled(KERNELS, "conditions.cu", [], "sm_90").cubin


@pytest.fixture
def host(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Host:
    return Host(tmp_path, capfd)


def test_a_kernel_chooses_the_body_that_runs(host: Host) -> None:
    ran = host.run(
        PROLOGUE
        + """
graph = new_graph()
handle, other = handle_of(graph), handle_of(graph)
add_kernel(graph, "chooses", handle, x)
yes, no = add_condition(graph, handle, IF, 2)
add_kernel(yes, "adds", y, C.c_int(1)), add_kernel(no, "adds", y, C.c_int(10))
add_kernel(graph, "chooses", other, x)
bodies = add_condition(graph, other, SWITCH, 3)
for k in range(3): add_kernel(bodies[k], "adds", y, C.c_int(100 * (k + 1)))
made = ready(graph)
for value in (0, 2, 3): replay(made, x, value); print(number(y))
kind = C.c_int()
node = (C.c_void_p * 4)(); call("cuGraphGetNodes", graph, node, C.byref(C.c_size_t(4)))
call("cuGraphNodeGetType", C.c_void_p(node[1]), C.byref(kind)); print(kind.value)
""",
        made=code(),
    )
    # 0: 10 and 100; 2: 1 and 300; 3, beyond the bodies: 1 alone.
    assert ran.out == ["110", "411", "412", "13"]


def test_a_loop_runs_while_its_condition_holds_and_begins_anew_with_its_first_value(
    host: Host,
) -> None:
    ran = host.run(
        PROLOGUE
        + """
graph = new_graph()
handle = handle_of(graph, 1, 1)
body, = add_condition(graph, handle, WHILE, 1)
steps = take(4); call("cuMemsetD32_v2", steps, 0, C.c_size_t(1))
more = add_kernel(body, "adds", y, C.c_int(5))
add_kernel(body, "counts_down", handle, x, steps)
made = ready(graph)
replay(made, x, 3); print(number(steps), number(y))
changed = of_kernel("adds", y, C.c_int(7))
call("cuGraphExecKernelNodeSetParams_v2", made, more, C.byref(changed))
replay(made, x, 2); print(number(steps), number(y))
print(call("cuGraphExecUpdate_v2", made, graph, None))
replay(made, x, 1); print(number(steps), number(y))
call("cuGraphExecDestroy", made), call("cuGraphDestroy", graph)
""",
        made=code(),
    )
    assert ran.out == ["3 15", "5 29", "0", "6 34"]
    assert "counts_down" in ran.err


def test_graphs_with_conditions_are_no_children_and_wrong_conditions_are_refused(
    host: Host,
) -> None:
    ran = host.run(
        PROLOGUE
        + """
graph, parent, copy, node = new_graph(), new_graph(), C.c_void_p(), C.c_void_p()
handle = handle_of(graph)
call("cuGraphClone", C.byref(copy), graph)
call("cuGraphAddChildGraphNode", C.byref(node), parent, None, C.c_size_t(0), graph)
add_condition(graph, handle, WHILE, 2), add_condition(graph, C.c_uint64(0), IF, 1)
handle_of(graph, 1, 2)
launch("chooses", 1, 1, C.c_uint64(0x40), x)
call("cuCtxSynchronize")
""",
        made=code(),
    )
    assert ran.out == [
        *("cuGraphClone 1", "cuGraphAddChildGraphNode 1"),
        *("cuGraphAddNode_v2 1", "cuGraphAddNode_v2 1"),
        *("cuGraphConditionalHandleCreate 1", "cuCtxSynchronize 719"),
    ]
    assert "0x40 is not the handle of a graph's condition" in ran.err


def test_memory_of_graphs_is_held_until_it_is_trimmed(host: Host) -> None:
    ran = host.run(
        PROLOGUE
        + """
class Memory(C.Structure):
    _fields_ = [("pool", C.c_char * 88), ("access", C.c_void_p), ("count", C.c_size_t),
                ("size", C.c_size_t), ("address", C.c_uint64)]
def holds(): return [value.value for value in map(attribute, range(4))]
def attribute(k):
    value = C.c_uint64()
    call("cuDeviceGetGraphMemAttribute", 0, k, C.byref(value))
    return value
def takes(graph, size):
    memory, node = Memory(size=size), C.c_void_p()
    call("cuGraphAddMemAllocNode", C.byref(node), graph, None, C.c_size_t(0), C.byref(memory))
    return C.c_uint64(memory.address)
def gives_back(graph, address):
    call("cuGraphAddMemFreeNode", C.byref(C.c_void_p()), graph, None, C.c_size_t(0), address)
both, keeps = new_graph(), new_graph()
for size in (1000, 3000): gives_back(both, takes(both, size))
kept = takes(keeps, 500)
both, keeps = ready(both), ready(keeps)
print(holds())
call("cuGraphLaunch", both, None); print(holds())
call("cuGraphLaunch", keeps, None); print(holds())
call("cuDeviceGraphMemTrim", 0); print(holds())
call("cuMemFree_v2", kept), call("cuDeviceGraphMemTrim", 0)
call("cuDeviceSetGraphMemAttribute", 0, 1, C.byref(C.c_uint64(0))); print(holds())
call("cuDeviceSetGraphMemAttribute", 0, 0, C.byref(C.c_uint64(0)))
""",
        made=code(),
    )
    assert ran.out == [
        *("[0, 0, 0, 0]", "[3000, 3000, 3000, 3000]", "[3000, 3000, 3000, 3000]"),
        *("[500, 3000, 500, 3000]", "[0, 0, 0, 0]", "cuDeviceSetGraphMemAttribute 1"),
    ]


CAPTURED = """
#include <cstdio>
__global__ void step(int *x, cudaGraphConditionalHandle handle) {
    printf("%d\\n", *x);
    cudaGraphSetConditional(handle, --*x > 0);
}
__global__ void ends(int *x) { printf("ends at %d\\n", *x); }
int main() {
    int *x;
    cudaMallocManaged(&x, sizeof *x);
    cudaStream_t stream, inner;
    cudaStreamCreate(&stream), cudaStreamCreate(&inner);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    const cudaGraphNode_t *before;
    size_t count;
    cudaStreamGetCaptureInfo(stream, &status, 0, &graph, &before, 0, &count);
    cudaGraphConditionalHandle handle;
    cudaGraphConditionalHandleCreate(&handle, graph);
    step<<<1, 1, 0, stream>>>(x, handle);
    cudaStreamGetCaptureInfo(stream, &status, 0, &graph, &before, 0, &count);
    cudaGraphNodeParams given = {cudaGraphNodeTypeConditional};
    given.conditional.handle = handle;
    given.conditional.type = cudaGraphCondTypeWhile;
    given.conditional.size = 1;
    cudaGraphNode_t node;
    cudaGraphAddNode(&node, graph, before, 0, count, &given);
    cudaStreamUpdateCaptureDependencies(stream, &node, 0, 1, cudaStreamSetCaptureDependencies);
    ends<<<1, 1, 0, stream>>>(x);
    cudaStreamEndCapture(stream, &graph);
    cudaGraph_t body = given.conditional.phGraph_out[0];
    cudaStreamBeginCaptureToGraph(inner, body, 0, 0, 0, cudaStreamCaptureModeGlobal);
    step<<<1, 1, 0, inner>>>(x, handle);
    cudaStreamEndCapture(inner, 0);
    cudaGraphExec_t made;
    cudaGraphInstantiate(&made, graph, 0);
    *x = 3;
    cudaGraphLaunch(made, stream);
    return cudaDeviceSynchronize();
}
"""


@pytest.mark.slow
@pytest.mark.skipif(not has_nvcc(), reason="needs nvcc")
def test_a_condition_is_added_while_a_stream_is_captured(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "captured.cu"
    file.write_text(CAPTURED)
    assert main(["run", str(file)]) == 0
    assert capfd.readouterr().out.splitlines() == ["3", "2", "1", "ends at 0"]
