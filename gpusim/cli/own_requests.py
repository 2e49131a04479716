"""Requests for a user's own kernel in a ranking or a sweep: plain data until it makes a job.

Requests whose times are compared do the same work: the results of each, small, are compared with
those of the first launch, or of the file's own launch.
"""

from __future__ import annotations

import hashlib
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.cli import inputs
from gpusim.cli.launches import FileLaunch, by_its_rule, completed, depends_on, of_a_file
from gpusim.cli.references import Reference
from gpusim.cli.tuning_parameters import require_used, with_values
from gpusim.errors import GpusimError, InputError, KernelFault
from gpusim.host import files
from gpusim.launch.description import LaunchDescription
from gpusim.prediction.sweeps.jobs import Difference

if TYPE_CHECKING:
    from gpusim.catalogue import Request
    from gpusim.cli.results import Outputs
    from gpusim.cuda import Kernel
    from gpusim.launch.configured import MachineCode
    from gpusim.launch.grid import ComputeCapability
    from gpusim.prediction.sweeps.jobs import Job

WAVES = "waves"  # a choice of a number of blocks

# Options read from the command line; only some are offered, the rest is the catalogue's.
TAKEN = (
    "grid", "cluster", "arg", "shared_bytes", "include", "define", "std", "op", "dtype", "coarse",
)  # fmt: skip


@dataclass(frozen=True)
class OwnRequest:
    """A kernel by file and name, its size, and the options of its launch by their destination.

    It is without a size where neither grid nor arguments depend on n. `digest` is that of the files
    that it is made from, `parameters` are the values of tuning parameters.
    """

    kernel: str
    n: int | None
    block: int | str | None
    options: tuple[tuple[str, Any], ...]
    digest: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    operation: str | None = None
    dtype: str | None = None
    passes: str = "one"
    described: LaunchDescription | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls, kernel: str, chosen: Namespace, ccs: Iterable[ComputeCapability] = ()
    ) -> OwnRequest:
        """Return the request of a command line for a kernel; InputError if there is none.

        Its digest is that of its files on GPUs of `ccs`.
        """
        if chosen.passes != "one":
            raise InputError(f"--passes all is for reductions of the catalogue, not {kernel}")
        first = {name: values[0] for name, values in (getattr(chosen, "axes", None) or {}).items()}
        chosen = Namespace(**{**vars(chosen), "kernel": kernel, "n": None, "block": None})
        made = cls(kernel, None, None, _options(chosen), parameters=tuple(first.items()))
        asked = made._chosen()
        found = Reference.of(asked.kernel).made(asked)
        complete, described = completed(chosen, found)
        n = None if complete.n is None else inputs.count(complete.n)
        made = replace(made, n=n, block=complete.block, options=_options(complete))
        made = replace(made, described=described)
        digest = hashlib.sha256("\0".join(_headers(found, ccs)).encode())
        for path in dict.fromkeys(made._files()):
            with files.opened(path, again=True) as file:
                digest.update(str(path).encode() + b"\0" + file.read())
        return replace(made, digest=digest.hexdigest())

    def sized(self, n: int | None, block: int | str | None) -> OwnRequest:
        """Return the same for another size and block; None leaves them as they are."""
        n = self.n if n is None else n
        block = self.block if block is None else block
        return replace(self, n=n if depends_on("n", self._chosen()) else None, block=block)

    def with_values(self, values: Mapping[str, int | str]) -> OwnRequest:
        """Return the same with a block, a grid, and values of tuning parameters.

        InputError for a parameter that stands neither in its file nor in its launch.
        """
        left = {name: str(value) for name, value in values.items()}
        block, grid = left.pop("block", self.block), left.pop("grid", None)
        options = dict(self.options) | ({} if grid is None else {"grid": str(grid)})
        made = replace(self, block=block, options=tuple(options.items()))
        made = replace(made, parameters=tuple({**dict(self.parameters), **left}.items()))
        require_used(made._chosen())
        return made

    def job(self) -> Job:
        """Return its launch, ready to be predicted; GpusimError where it cannot be."""
        launch = self.launch()
        return replace(launch.job(), name=self.kernel, description=launch.description)

    def launch(self) -> FileLaunch:
        """Return its launch, resolved; InputError where a member is missing."""
        return of_a_file(self._chosen())

    def difference(self, first: OwnRequest, device: str, code: str | None) -> Difference | None:
        """Return how its launch is wrong beside the first, None if both have equal results.

        Both are run once, small. The reason is a fault, errors of `gpusim check`, or other results;
        or one of them cannot run.
        """
        from gpusim.cli.results import agreements

        try:
            first = _small(first)
            other = self.sized(first.n, None)
            found = _outcome(other, device, code)
        except KernelFault as error:
            return Difference(f"it fails: {error}")
        except GpusimError as error:
            return Difference(str(error), is_wrong=False)
        try:
            expected = _outcome(first, device, code)
        except GpusimError as error:
            return Difference(f"the first launch: {error}", is_wrong=False)
        wrong = [one for one in agreements(expected, found) if not one.agrees]
        errors = _errors(other, device)
        if not wrong:
            return errors
        cause = f"; {errors.text}" if errors is not None and errors.is_wrong else ""
        return Difference(f"other results; {wrong[0]}{cause}")

    def _files(self) -> Iterator[Path]:
        """Yield its own file, that file's imports from its folder, and its data."""
        options = dict(self.options)
        reference = Reference.of(self.kernel)
        if reference.is_code:
            yield reference.path
        else:
            yield from sorted({reference.path.resolve(), *_modules_beside(reference.path)})
        data = (Path(text.partition("@")[2]) for text in options["arg"] or ())
        yield from (path for path in data if path.is_file())

    def _chosen(self) -> Namespace:
        n = None if self.n is None else str(self.n)
        block = None if self.block is None else str(self.block)
        options = {**dict(self.options), "described": self.described}
        chosen = Namespace(kernel=self.kernel, n=n, block=block, **options)
        return with_values(chosen, dict(self.parameters))


def description_of(request: Request | OwnRequest, chosen: Namespace) -> LaunchDescription:
    """Return the description of the reference launch of a request."""
    if isinstance(request, OwnRequest):
        return first_launch(request).launch().description
    return by_its_rule(request, chosen)


def first_launch(request: OwnRequest, choices: Iterable[tuple[str, int | str]] = ()) -> OwnRequest:
    """Return the reference launch: the file's own, else the first choices'."""
    try:
        request.launch()
    except InputError:
        values = {"grid" if name == WAVES else name: value for name, value in choices}
        return request.with_values(values)
    return request


def _options(chosen: Namespace) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _frozen(getattr(chosen, name, None))) for name in TAKEN)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _headers(kernel: Kernel | MachineCode, ccs: Iterable[ComputeCapability]) -> Iterator[str]:
    """Yield the files that the compiler reads for a kernel, each with its state."""
    from gpusim.sass.compiler import ARCHITECTURES
    from gpusim.sass.kernels import CodeKernel

    if isinstance(kernel, CodeKernel):
        for cc in sorted(set(ccs)):
            if str(cc) in ARCHITECTURES:
                yield from map(ascii, kernel.file.lookups(kernel.__name__, cc))


def _modules_beside(path: Path) -> Iterator[Path]:
    """Yield the modules that are imported from a file's folder and below, as its own imports are.

    Installed packages may lie there too, in a virtual environment, and are no part of it.
    """
    folder = path.resolve().parent
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        found = _resolved(file) if file else Path()
        if found.is_relative_to(folder) and "site-packages" not in found.parts:
            yield found


@cache
def _resolved(file: str) -> Path:
    return Path(file).resolve()


def request_of(
    name: str, chosen: Namespace, ccs: Iterable[ComputeCapability] = ()
) -> Request | OwnRequest:
    """Return the request for a kernel, yet without a size; InputError if there is none."""
    from gpusim.cli.project import with_launch
    from gpusim.cli.selection import asked_of

    chosen = with_launch(Namespace(**{**vars(chosen), "kernel": name}))
    name = chosen.kernel
    is_own = bool(Reference.of(name).file)
    return OwnRequest.of(name, chosen, ccs) if is_own else asked_of(name, chosen)


# Of a launch that is run for its results, to be compared with those of others.
MOST_ELEMENTS, LEAST_ELEMENTS = 4096, 64
USUAL_THREADS, MOST_THREADS = 1 << 16, 1 << 20
KEPT = 64


@lru_cache(maxsize=KEPT)
def _outcome(request: OwnRequest, device: str, code: str | None) -> Outputs:
    """Return a launch's results; GpusimError if it has none."""
    from gpusim.cli.results import ran
    from gpusim.codegen.programs import prepare
    from gpusim.errors import InputError
    from gpusim.gpu import device as devices
    from gpusim.machine import DEFAULT_STEP_LIMIT

    configured, values = request.launch().filled()
    if configured.launch.blocks * configured.launch.threads_per_block > MOST_THREADS:
        raise InputError(f"a launch has more than {MOST_THREADS:,} threads")
    prepared = prepare(configured, values, devices.load(device).cc, code=code)
    return ran(configured, values, prepared, DEFAULT_STEP_LIMIT)


@lru_cache(maxsize=KEPT)
def _errors(request: OwnRequest, device: str) -> Difference | None:
    """Return the errors that a check of a launch finds, None for none."""
    from gpusim.checking.check import check

    configured, values = request.launch().filled()
    try:
        errors = check(configured, *values, device=device).errors
    except GpusimError as error:
        return Difference(str(error), is_wrong=False)
    rules = ", ".join(dict.fromkeys(one.rule for one in errors))
    return Difference(f"gpusim check finds errors: {rules}") if errors else None


@lru_cache(maxsize=KEPT)
def _small(request: OwnRequest) -> OwnRequest:
    """Return a launch for n elements that is quickly run: n is halved until it is."""
    n = None if request.n is None else min(request.n, MOST_ELEMENTS)
    while True:
        small = request.sized(n, None)
        launch = small.launch().configured.launch
        threads = launch.blocks * launch.threads_per_block
        if threads <= USUAL_THREADS or n is None or n <= LEAST_ELEMENTS:
            return small
        n //= 2
