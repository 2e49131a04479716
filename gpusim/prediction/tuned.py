"""`gpusim.tune`: the best launch of a kernel on a GPU, from Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpusim.catalogue import Request
from gpusim.codegen import generators
from gpusim.errors import InputError, shown_at_the_call
from gpusim.launch.configured import ConfiguredKernel
from gpusim.machine import DEFAULT_STEP_LIMIT
from gpusim.prediction.sweeps.choices import WAVES, Value, axes_of, crossed_choices, require_axes
from gpusim.prediction.sweeps.jobs import Asked, Difference, Job, own_job
from gpusim.prediction.sweeps.sweep import Case
from gpusim.prediction.sweeps.tuning import Tuned, best_launches

Launching = Callable[..., tuple[ConfiguredKernel, Sequence[Any]]]


@shown_at_the_call
def tune(
    kernel: str | Request | Launching,
    *,
    device: str = "h200",
    n: int | None = None,
    l2: str = "cold",
    code: str | None = None,
    step_limit: int = DEFAULT_STEP_LIMIT,
    workers: int = 1,
    **axes: Sequence[Value],
) -> Tuned:
    """Return the candidates of a kernel's launch by their time on `device`, fastest first.

    `kernel` is a name of the catalogue or a `Request`, with `n` elements, or a function that makes
    a launch of its parameters: it returns `kernel[grid, block]` and the arguments. `axes` are the
    values of each: `block`, `coarse` and `waves` for the catalogue, by default as far as the launch
    rule leaves them open; the function's parameters otherwise. `waves` become its `grid`: full
    waves of resident blocks. `workers` is the number of processes for a kernel of the catalogue.
    The other arguments are those of `gpusim.predict`.

    Raises InputError for an axis that the kernel does not have, and where nothing varies.
    """
    request: Request | Asked
    if callable(kernel):
        if n is not None:
            raise InputError("n is for kernels of the catalogue; a function knows its own size")
        request, workers = _Launches(kernel, kernel.__name__), 1
        _require_parameters(kernel, axes)
    else:
        asked = Request(kernel) if isinstance(kernel, str) else kernel
        request = asked if n is None else asked.sized(n, asked.block)
        axes = axes or dict(axes_of(asked))
    if not axes:
        raise InputError("nothing varies: give alternatives, as in block=[64, 128, 256]")
    require_axes(request, axes)
    choices = list(crossed_choices(axes))
    if isinstance(request, Request):
        choices.insert(0, ())  # the launch rule's own
    case = Case(request, device, l2=l2, step_limit=step_limit, code=generators.chosen(code))
    (found,) = best_launches([replace(case, choices=one) for one in choices], workers=workers)
    return found


def _require_parameters(make: Launching, axes: Mapping[str, Sequence[Value]]) -> None:
    """Raise InputError for axes that a function does not take, and for parameters without one."""
    names = {"grid" if name == WAVES else name for name in axes}
    try:
        inspect.signature(make).bind(**dict.fromkeys(names))
    except TypeError as error:
        raise InputError(f"{make.__name__} does not take these axes: {error}") from None


@dataclass(frozen=True)
class _Launches:
    """Launches made by a function, of values by its parameters' names."""

    make: Launching
    kernel: str
    values: tuple[tuple[str, Value], ...] = ()
    n: int | None = None
    block: int | str | None = None
    operation: str | None = None
    dtype: Any = None
    passes: str = "one"

    def sized(self, n: int | None, block: int | str | None) -> _Launches:
        """Return the same launches: their size is the function's."""
        return self

    def with_values(self, values: Mapping[str, Value]) -> _Launches:
        """Return the launch of these values, beside those that it has."""
        return replace(self, values=tuple({**dict(self.values), **values}.items()))

    def difference(self, first: Any, device: str, code: str | None) -> Difference | None:
        """Return nothing: the arrays are those of the caller, and may have no elements."""
        return None

    def job(self) -> Job:
        """Return the launch as a job."""
        configured, arguments = self.make(**dict(self.values))
        return own_job(configured, arguments)
