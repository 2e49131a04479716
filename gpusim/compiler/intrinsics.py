"""The dialect's intrinsics: a function for each that builds its operations from arguments.

An intrinsic with a dot in its name, as `atomic.add`, is a row by the part before the dot.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gpusim.compiler import arrays
from gpusim.compiler.arguments import floats_of, need, truth_of, value_of
from gpusim.compiler.builder import Builder, type_of
from gpusim.compiler.ir import BOOL, INT32, UINT32, UINT64, Array, Value
from gpusim.compiler.types import promoted

FULL_MASK = 0xFFFFFFFF
AXES = "xyz"
REDUCTIONS = ("add", "min", "max", "and", "or", "xor")

# Builder, values of the arguments, place, and the name after the dot (whole if there is no dot).
Meaning = Callable[[Builder, list[Any], ast.Call, str], Any]


def _grid(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Any:
    need(builder, values, node, 1)
    if values[0] not in (1, 2, 3):
        raise builder.error(f"cuda.{name} takes 1, 2 or 3", node)
    emit = builder.graph.emit

    def one(axis: str) -> Value:
        size = emit("sreg", INT32, detail=f"ntid.{axis}")
        if name == "gridsize":
            return emit("mul", INT32, [size, emit("sreg", INT32, detail=f"nctaid.{axis}")])
        start = emit("mul", INT32, [emit("sreg", INT32, detail=f"ctaid.{axis}"), size])
        return emit("add", INT32, [start, emit("sreg", INT32, detail=f"tid.{axis}")])

    parts = tuple(one(axis) for axis in AXES[: values[0]])
    return parts[0] if values[0] == 1 else parts


def _shared(builder: Builder, values: list[Any], node: ast.Call, _: str) -> Array:
    need(builder, values, node, 2)
    return arrays.declare(builder, "shared", values[0], values[1], node)


def _local(builder: Builder, values: list[Any], node: ast.Call, _: str) -> Array:
    need(builder, values, node, 2)
    return arrays.declare(builder, "local", values[0], values[1], node)


def _volatile(builder: Builder, values: list[Any], node: ast.Call, _: str) -> Array:
    need(builder, values, node, 1)
    if not isinstance(values[0], Array):
        raise builder.error("cuda.volatile takes an array", node)
    return replace(values[0], volatile=True)


def _barrier(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Any:
    if name == "syncthreads":
        need(builder, values, node, 0)
        builder.graph.emit("barrier", None, [], "sync")
        return None
    need(builder, values, node, 1)
    predicate = truth_of(builder, values[0], node)
    return builder.graph.emit("barrier", INT32, [predicate], name.removeprefix("syncthreads_"))


def _syncwarp(builder: Builder, values: list[Any], node: ast.Call, _: str) -> None:
    need(builder, values, node, 0, 1)
    mask = value_of(builder, values[0] if values else FULL_MASK, node, UINT32)
    builder.graph.emit("syncwarp", None, [mask])


def _shuffle(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Value:
    need(builder, values, node, 3, 4)
    mode = {"shfl_sync": "idx", "shfl_xor_sync": "bfly"}.get(name) or name.split("_")[1]
    mask = value_of(builder, values[0], node, UINT32)
    value = value_of(builder, values[1], node)
    value = builder.as_type(value, promoted(type_of(value)))
    lane = value_of(builder, values[2], node, INT32)
    width = value_of(builder, values[3] if len(values) == 4 else 32, node, INT32)
    return builder.graph.emit("shuffle", value.dtype, [mask, value, lane, width], mode)


def _vote(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Value:
    need(builder, values, node, 2)
    mode = name.split("_")[0]
    args = [value_of(builder, values[0], node, UINT32), truth_of(builder, values[1], node)]
    return builder.graph.emit("vote", UINT32 if mode == "ballot" else BOOL, args, mode)


def _match(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Any:
    need(builder, values, node, 2)
    mode = name.split("_")[1]
    value = value_of(builder, values[1], node)
    value = builder.as_type(value, promoted(type_of(value)))
    args = [value_of(builder, values[0], node, UINT32), value]
    match = builder.graph.emit("match", UINT32, args, mode)
    if mode == "any":
        return match
    emit = builder.graph.emit
    return emit("element", UINT32, [match], 0), emit("element", BOOL, [match], 1)


def _reduce(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Value:
    need(builder, values, node, 2)
    mode = name.split("_")[1]
    value = value_of(builder, values[1], node)
    value = builder.as_type(value, promoted(type_of(value)))
    dtype = type_of(value)
    if dtype not in (INT32, UINT32):
        raise builder.error(f"cuda.{name} takes an integer of 32 bits, not a {dtype}", node)
    mask = value_of(builder, values[0], node, UINT32)
    if mode in ("add", "min", "max"):
        return builder.graph.emit("reduce", dtype, [mask, value], mode)
    bits = builder.graph.emit("reduce", UINT32, [mask, builder.as_type(value, UINT32)], mode)
    return builder.as_type(bits, dtype)


def _activemask(builder: Builder, values: list[Any], node: ast.Call, _: str) -> Value:
    need(builder, values, node, 0)
    return builder.graph.emit("activemask", UINT32)


def _bits(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Value:
    need(builder, values, node, 1)
    value = value_of(builder, values[0], node)
    dtype = type_of(value)
    if dtype.kind not in "iu":
        raise builder.error(f"cuda.{name} takes an integer", node)
    return builder.graph.emit(name, dtype if name == "brev" else INT32, [value])


def _fma(builder: Builder, values: list[Any], node: ast.Call, _: str) -> Value:
    need(builder, values, node, 3)
    args = floats_of(builder, values, node)
    return builder.graph.emit("math", type_of(args[0]), args, "fma")


def _atomic(builder: Builder, values: list[Any], node: ast.Call, operation: str) -> Value:
    need(builder, values, node, 4 if operation == "cas" else 3)
    array, index, *operands = values
    if not isinstance(array, Array) or array.space == "local":
        raise builder.error("an atomic operation takes a global or shared array", node)
    if array.dtype.itemsize < 4:
        raise builder.error("atomic operations need elements of 4 or 8 bytes", node)
    if operation in ("and", "or", "xor") and array.dtype.kind == "f":
        raise builder.error("bits need integers", node)
    flat = arrays.flat_index(builder, array, index, node)
    numbers = [value_of(builder, v, node, array.dtype) for v in operands]
    return builder.graph.emit("atomic", array.dtype, [flat, *numbers], (array, operation))


def _fence(builder: Builder, values: list[Any], node: ast.Call, name: str) -> None:
    need(builder, values, node, 0)
    scope = name.removeprefix("threadfence").lstrip("_") or "gpu"
    builder.graph.emit("fence", None, [], scope)


def _vector(builder: Builder, values: list[Any], node: ast.Call, count: Any) -> Array:
    array = values[0]
    if not isinstance(array, Array):
        raise builder.error("a vector access takes an array, an index and the elements", node)
    if count not in (2, 4) or array.dtype.itemsize * count > 16:
        raise builder.error("a vector access is of 2 or 4 elements, 16 bytes at most", node)
    if array.strided:
        raise builder.error(f"{array.name} has strides; a vector access needs none", node)
    if array.dtype.itemsize < 4:
        raise builder.error("vector accesses need elements of 4 or 8 bytes", node)
    return array


def _load_vector(builder: Builder, values: list[Any], node: ast.Call, _: str) -> Any:
    need(builder, values, node, 3)
    array = _vector(builder, values, node, values[2])
    index = arrays.flat_index(builder, array, values[1], node)
    loaded = builder.graph.emit("load_vector", array.dtype, [index], (array, values[2]))
    return tuple(
        builder.graph.emit("element", array.dtype, [loaded], position)
        for position in range(values[2])
    )


def _store_vector(builder: Builder, values: list[Any], node: ast.Call, _: str) -> None:
    need(builder, values, node, 3)
    items = values[2]
    if not isinstance(items, tuple):
        raise builder.error("store_vector takes a tuple of the elements", node)
    array = _vector(builder, values, node, len(items))
    index = arrays.flat_index(builder, array, values[1], node)
    numbers = [value_of(builder, v, node, array.dtype) for v in items]
    builder.graph.emit("store_vector", None, [index, *numbers], (array, len(items)))


def _cluster(builder: Builder, values: list[Any], node: ast.Call, name: str) -> Any:
    if name == "map_shared_rank":
        return _map_shared_rank(builder, values, node)
    need(builder, values, node, 0)
    if name in ("block_rank", "num_blocks"):
        return builder.graph.emit("cluster", INT32, [], name)
    builder.graph.emit("cluster_barrier", None, [], name)
    return None


def _map_shared_rank(builder: Builder, values: list[Any], node: ast.Call) -> Array:
    need(builder, values, node, 2)
    own = values[0]
    if not isinstance(own, Array) or own.space != "shared":
        raise builder.error("cuda.cluster.map_shared_rank takes a shared array and a rank", node)
    rank = value_of(builder, values[1], node, INT32)
    peer = replace(own, space="cluster", offset=builder.new_number())
    builder.graph.emit("map_shared_rank", None, [rank], (replace(peer, volatile=False), own))
    return peer


# The arguments of cuda.barrier's words, after the array of barriers and the index of one.
BARRIER_ARGUMENTS: Mapping[str, int] = {"init": 1, "arrive": 0, "arrive_tx": 2, "wait_parity": 1}


def _mbarrier(builder: Builder, values: list[Any], node: ast.Call, name: str) -> None:
    need(builder, values, node, 2 + BARRIER_ARGUMENTS[name])
    array = _of_barriers(builder, values[0], node)
    index = arrays.flat_index(builder, array, values[1], node)
    numbers = [value_of(builder, one, node, UINT32) for one in values[2:]]
    builder.graph.emit("mbarrier", None, [index, *numbers], (array, name))


def _of_barriers(builder: Builder, array: Any, node: ast.Call) -> Array:
    if not isinstance(array, Array) or array.space != "shared" or array.dtype != UINT64:
        raise builder.error(
            "barriers are elements of a shared array: cuda.shared.array(count, np.uint64)", node
        )
    return array


def _memcpy_async_tx(builder: Builder, values: list[Any], node: ast.Call, name: str) -> None:
    need(builder, values, node, 7)
    target, target_index, source, source_index, count, barriers, barrier = values
    if not isinstance(target, Array) or not isinstance(source, Array):
        raise builder.error(f"cuda.{name} takes two arrays, each with an index", node)
    if (target.space, source.space) != ("shared", "global") or target.dtype != source.dtype:
        raise builder.error(
            f"cuda.{name} copies from a global array to a shared one of the same type, not from "
            f"{source.space} {source.dtype} to {target.space} {target.dtype}",
            node,
        )
    if source.strided:
        raise builder.error(f"{source.name} has strides; a bulk copy needs none", node)
    held = _of_barriers(builder, barriers, node)
    flat = arrays.flat_index
    elements = value_of(builder, count, node, UINT32)
    size = builder.graph.constant(target.dtype.itemsize, UINT32)
    operands = [
        flat(builder, target, target_index, node),
        flat(builder, source, source_index, node),
        builder.graph.emit("mul", UINT32, [elements, size]),
        flat(builder, held, barrier, node),
    ]
    builder.graph.emit("memcpy_async_tx", None, operands, (target, source, held))


def _proxy_fence(builder: Builder, values: list[Any], node: ast.Call, _: str) -> None:
    need(builder, values, node, 0)
    builder.graph.emit("proxy_fence", None)


INTRINSICS: Mapping[str, Meaning] = {
    "grid": _grid,
    "gridsize": _grid,
    "shared": _shared,
    "local": _local,
    "volatile": _volatile,
    "syncthreads": _barrier,
    "syncthreads_count": _barrier,
    "syncthreads_and": _barrier,
    "syncthreads_or": _barrier,
    "syncwarp": _syncwarp,
    "shfl_sync": _shuffle,
    "shfl_up_sync": _shuffle,
    "shfl_down_sync": _shuffle,
    "shfl_xor_sync": _shuffle,
    "all_sync": _vote,
    "any_sync": _vote,
    "ballot_sync": _vote,
    "match_any_sync": _match,
    "match_all_sync": _match,
    **dict.fromkeys((f"reduce_{one}_sync" for one in REDUCTIONS), _reduce),
    "activemask": _activemask,
    "popc": _bits,
    "ffs": _bits,
    "clz": _bits,
    "brev": _bits,
    "fma": _fma,
    "atomic": _atomic,
    "threadfence": _fence,
    "threadfence_block": _fence,
    "threadfence_system": _fence,
    "fence_proxy_async": _proxy_fence,
    "cluster": _cluster,
    "barrier": _mbarrier,
    "memcpy_async_tx": _memcpy_async_tx,
    "load_vector": _load_vector,
    "store_vector": _store_vector,
}
