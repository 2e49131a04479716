"""The place of tensors: results of operations lie where their operands do."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, NamedTuple

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes as without_modes

from . import memory
from .memory import is_there

DEVICE = torch.device("cuda", 0)
_CPU, _META = torch.device("cpu"), torch.device("meta")
_DRAWN = 4  # Philox's numbers of 32 bits for an offset
_MOST_STATES = 1000
_UNWRITTEN = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)  # not those of a tracer
_base = torch._C.TensorBase


class Operations:
    """How many operations of PyTorch's own have computed on device memory, and the last one."""

    count = 0
    last = ""


class _Plan(NamedTuple):
    """An operation's effect on memory: places and names of its written operands, its result."""

    written: tuple[int, ...]
    written_names: tuple[str, ...]
    is_unwritten: bool  # memory without values
    computes: bool  # no view, no memory without values
    moves: bool  # writes an operand, wherever it lies


_plans: dict[Any, _Plan] = {}


def _plan(function: Any) -> _Plan:
    schema = function._schema
    is_written = [
        one.alias_info is not None and one.alias_info.is_write for one in schema.arguments
    ]
    positions = tuple(number for number, found in enumerate(is_written) if found)
    names = tuple(
        one.name for one, found in zip(schema.arguments, is_written, strict=True) if found
    )
    is_view = not positions and any(one.alias_info is not None for one in schema.returns)
    name = function.overloadpacket.__name__
    is_unwritten = name in _UNWRITTEN
    made = _Plan(positions, names, is_unwritten, not (is_view or is_unwritten), name == "copy_")
    return _plans.setdefault(function, made)


def tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among arguments, and in lists of them."""
    for one in values:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from tensors(one)


def is_cuda(device: Any) -> bool:
    """Return whether a device, by any of its names, is the simulated one."""
    if device is None:
        return False
    return isinstance(device, int) or torch.device(device).type == "cuda"


class Placing(TorchDispatchMode):
    """Computes each operation on the processor; results of tensors on the device are there too.

    PyTorch's composed operations take a tensor's device from C++, the CPU. So an operand on the
    device, or CUDA by name, decides alone.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operation imports Dynamo, for two seconds

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Compute an operation and place its results."""
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if device is not None and device.type == "cuda":
            kwargs = {**kwargs, "device": _CPU}
        elif not any(map(is_there, tensors(args))) and not (
            kwargs and any(map(is_there, tensors(kwargs.values())))
        ):
            return function(*args, **kwargs)
        plan = _plans.get(function) or _plan(function)
        if plan.is_unwritten:
            shape = function(*args, **{**kwargs, "device": _META})
            return memory.empty(shape.size(), shape.stride(), shape.dtype)
        if plan.written and not plan.moves:
            for one in _written(plan, args, kwargs):
                if not is_there(one):  # made by the same composed operation
                    one.set_(memory.copied(one))
        result = function(*args, **kwargs)
        if plan.computes:
            Operations.count += 1
            Operations.last = function.overloadpacket.__name__
        if plan.written:
            for one in _written(plan, args, kwargs):
                if is_there(one):
                    memory.written(one)
            return result
        return _placed(result)


def _written(plan: _Plan, args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors that an operation writes."""
    yield from tensors(args[number] for number in plan.written if number < len(args))
    if kwargs:
        yield from tensors(kwargs[name] for name in plan.written_names if name in kwargs)


def _placed(result: Any) -> Any:
    if isinstance(result, torch.Tensor):
        return result if is_there(result) else memory.copied(result)
    if isinstance(result, (list, tuple)):
        return type(result)([_placed(one) for one in result])
    return result


class Moved(torch.autograd.Function):
    """A copy of a tensor on the device, or on the host; its gradient goes back."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, to_device: bool) -> torch.Tensor:
        """Copy the tensor."""
        ctx.to_device = to_device
        return _moved(tensor.detach(), to_device=to_device)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Copy the gradient back."""
        return _moved(gradients[0], to_device=not ctx.to_device), None


def _moved(tensor: torch.Tensor, *, to_device: bool) -> torch.Tensor:
    with without_modes():
        return memory.to_device(tensor) if to_device else memory.to_host(tensor)


def moved(tensor: torch.Tensor, *, to_device: bool) -> torch.Tensor:
    """Return a tensor itself where it is there already, else a copy."""
    if is_there(tensor) == to_device:
        return tensor
    made: torch.Tensor = Moved.apply(tensor, to_device)
    return made


def _to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Stand for Tensor.to."""
    if type(tensor) not in _PLAIN:
        return _base.to(tensor, *args, **kwargs)
    if args and isinstance(args[0], torch.Tensor):
        other, *rest = args
        args = other.device, other.dtype, *rest
    elif args and isinstance(args[0], int):
        args = DEVICE, *args[1:]
    device, dtype, _, form = torch._C._nn._parse_to(
        *args, **{name: value for name, value in kwargs.items() if name != "copy"}
    )
    goes = device is not None and is_there(tensor) != is_cuda(device)
    if dtype is not None and dtype != tensor.dtype and not (goes and is_cuda(device)):
        tensor = _base.to(tensor, dtype)
        dtype = None
    if goes:
        tensor = moved(tensor, to_device=is_cuda(device))
    copies = kwargs.get("copy", False) and not goes
    if dtype is None and form is None and not copies:
        return tensor
    wanted = {} if form is None else {"memory_format": form}
    return _base.to(tensor, dtype or tensor.dtype, copy=copies, **wanted)


def _made(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a tensor of values in C++, where no mode sees it."""

    @wraps(make)
    def made(data: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is None:
            there = isinstance(data, torch.Tensor) and is_there(data)
            device = DEVICE if there else _default_device()
        if (
            isinstance(data, torch.Tensor)
            and type(data) in _PLAIN
            and make is not _MAKERS["tensor"]
        ):
            return _to(data, device, *args, **kwargs)
        found = make(data, *args, device=_CPU if is_cuda(device) else device, **kwargs)
        if not is_cuda(device):
            return found
        placed = _moved(found.detach(), to_device=True)
        return placed.requires_grad_(found.requires_grad)

    return made


def _default_device() -> torch.device:
    """Return the device of the innermost context, or of torch.set_default_device."""
    modes = reversed(_get_current_function_mode_stack())
    found = (mode.device for mode in modes if isinstance(mode, DeviceContext))
    return next(found, _CPU)


_MAKERS = {name: getattr(torch, name) for name in ("tensor", "as_tensor", "asarray")}


def _new_tensor(tensor: torch.Tensor, *args: Any, device: Any = None, **kwargs: Any) -> Any:
    place = tensor.device if device is None else device
    return torch.tensor(*args, device=place, **{"dtype": tensor.dtype, **kwargs})


def _deep_copy(tensor: torch.Tensor, memo: Any, /) -> Any:
    made = _deep_copy_in_torch(tensor, memo)
    if is_there(tensor) and not is_there(made):
        made.data = moved(made.data, to_device=True)
    return made


_deep_copy_in_torch = torch.Tensor.__deepcopy__


def _numpy(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    _refuse_on_device(tensor)
    return _base.numpy(tensor, *args, **kwargs)


def _array(tensor: torch.Tensor, *args: Any) -> Any:
    _refuse_on_device(tensor)
    return _array_in_torch(tensor, *args)


_array_in_torch = torch.Tensor.__array__


def _refuse_on_device(tensor: torch.Tensor) -> None:
    if is_there(tensor):
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
            "to host memory first."
        )


class Generator(torch._C.Generator):
    """A generator of random numbers on the processor; one of the device has a state of Philox.

    That is a seed and an offset, which programs read for their kernels and move on. The generator's
    own states are kept by it; at an unknown offset it is seeded anew.
    """

    place: tuple[int, int] | None
    states: dict[tuple[int, int], torch.Tensor]

    def __new__(cls, device: Any = None) -> Any:
        """Make a generator of the processor."""
        made = super().__new__(cls, _CPU if is_cuda(device) else torch.device(device or "cpu"))
        made.place = (made.initial_seed(), 0) if is_cuda(device) else None
        made.states = {}
        return made

    def manual_seed(self, seed: int) -> Any:
        """Set the seed."""
        if self.place is not None:
            self.place = seed, 0
            self.states.clear()
        return super().manual_seed(seed)

    def get_state(self) -> torch.Tensor:
        """Return the state as bytes."""
        state = super().get_state()
        if self.place is None:
            return state
        if not torch.equal(self.states.setdefault(self.place, state), state):
            self.place = self.place[0], self.place[1] + _DRAWN
            self.states[self.place] = state
        if len(self.states) > _MOST_STATES:
            self.states.pop(next(iter(self.states)))
        return torch.tensor(self.place, device=_CPU).view(torch.uint8)

    def set_state(self, state: torch.Tensor) -> Any:
        """Set the state from bytes."""
        if self.place is None:
            return super().set_state(state)
        seed, offset = state.view(torch.int64).tolist()
        self.place, known = (seed, offset), self.states.get((seed, offset))
        return super().manual_seed(seed + offset) if known is None else super().set_state(known)


def _device(tensor: torch.Tensor) -> torch.device:
    found: torch.device = _base.device.__get__(tensor)
    return DEVICE if found.type == "cpu" and is_there(tensor) else found


_METHODS: dict[str, Any] = {
    "device": property(_device),
    "is_cuda": property(lambda x: _device(x).type == "cuda"),
    "is_cpu": property(lambda x: _device(x).type == "cpu"),
    "get_device": lambda x: -1 if _device(x).index is None else _device(x).index,
    "to": _to,
    "cpu": lambda x, *_, **__: _to(x, "cpu"),
    "cuda": lambda x, *_, **__: _to(x, "cuda"),
    "pin_memory": lambda x, *_, **__: x,
    "new_tensor": _new_tensor,
    "numpy": _numpy,
    "__array__": _array,
    "__deepcopy__": _deep_copy,
}


def install() -> None:
    """Let tensors have places, in this thread and the threads started by it."""
    for name, method in _METHODS.items():
        setattr(torch.Tensor, name, method)
    for name, make in _MAKERS.items():
        setattr(torch, name, _made(make))
    torch.Generator = Generator
    thread: Any = threading.Thread
    thread._bootstrap_inner = _in_thread(thread._bootstrap_inner)
    Placing().__enter__()
    comparison: Any = torch.testing._comparison
    unwrap = getattr(comparison, "_unwrap_dtensor_for_comparison", None)
    if unwrap is not None:
        comparison._unwrap_dtensor_for_comparison = _without_distributed(unwrap)


def _without_distributed(unwrap: Callable[..., Any]) -> Callable[..., Any]:
    """Spare assert_close the import of distributed tensors, 0.9 s, where a program has none."""

    @wraps(unwrap)
    def unwrapped(actual: Any, expected: Any) -> Any:
        has_some = "torch.distributed.tensor" in sys.modules
        return unwrap(actual, expected) if has_some else (actual, expected)

    return unwrapped


def _in_thread(begin: Callable[..., None]) -> Callable[..., None]:
    @wraps(begin)
    def begun(thread: threading.Thread) -> None:
        with Placing():
            begin(thread)

    return begun
