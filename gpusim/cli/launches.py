"""The launch that a command's options describe, resolved in one place for all commands.

Each member is what is typed, else what the project's table says, else the comment in the kernel's
file, else the kernel's own rule, else the host code of the file. An option replaces a member alone.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpusim.cli.references import Reference
from gpusim.errors import InputError
from gpusim.launch.arguments import MAX_ARRAY
from gpusim.launch.description import LaunchDescription, Member, Origin

if TYPE_CHECKING:
    from gpusim.catalogue import Call, Entry, Request
    from gpusim.cli.host_launches import FileLaunch as FileLaunchOptions
    from gpusim.cli.selection import Selection
    from gpusim.cuda import Kernel
    from gpusim.cuda_cpp.host_numbers import Root
    from gpusim.launch.configured import ConfiguredKernel, MachineCode
    from gpusim.prediction.sweeps.jobs import Job

# Members by the destination of their options.
MEMBERS = ("n", "grid", "block", "shared_bytes", "cluster")
OF_THE_CATALOGUE = {"--op": "op", "--dtype": "dtype", "--input": "input", "--coarse": "coarse"}
OF_FILES = {
    "--arg": "arg", "--shared-bytes": "shared_bytes", "--uninitialised": "uninitialised",
}  # fmt: skip

# Of a launch of host code that is run, beyond which its size is halved; threads may each go through
# all elements, and host code that leaves its size open gets no large one.
MOST_THREADS, MOST_ELEMENTS, LEAST_ELEMENTS = 1 << 18, 1 << 20, 64
MOST_THREADS_OF_OPEN_SIZE = 1 << 12

Arguments = list[Any]


class ResolvedLaunch(ABC):
    """A launch with all of its members, ready to be run, traced, checked or predicted."""

    description: LaunchDescription

    @abstractmethod
    def bare(self) -> tuple[ConfiguredKernel, Arguments]:
        """Return kernel and arguments; arrays for which nothing is given have no elements."""

    @abstractmethod
    def filled(self) -> tuple[ConfiguredKernel, Arguments]:
        """Return kernel and arguments, every array with its elements."""

    @abstractmethod
    def job(self) -> Job:
        """Return the launch as a job to be predicted."""

    @property
    def entry(self) -> Entry | None:
        """The kernel of the catalogue, None for one of a file."""
        return None


@dataclass(eq=False)
class CatalogueLaunch(ResolvedLaunch):
    """A launch of a kernel of the catalogue, by its rule."""

    selection: Selection
    description: LaunchDescription
    passes: str = "one"

    @cached_property
    def call(self) -> Call:
        """The first launch with its data."""
        return self.selection.call()

    @property
    def entry(self) -> Entry:
        """The kernel."""
        return self.selection.entry

    def bare(self) -> tuple[ConfiguredKernel, Arguments]:
        """Return the first launch without its data."""
        setup = self.selection.request.setup()
        return setup.configured, list(setup.specs)

    def filled(self) -> tuple[ConfiguredKernel, Arguments]:
        """Return the first launch with its data."""
        return self.call.configured, list(self.call.arguments)

    def job(self) -> Job:
        """Return its launch, or all passes where they are requested."""
        from gpusim.prediction.sweeps.jobs import catalogue_job

        return catalogue_job(replace(self.selection.request, passes=self.passes))


@dataclass(eq=False)
class FileLaunch(ResolvedLaunch):
    """A launch of a kernel in a file; `chosen` are its options, those of the file among them."""

    chosen: Namespace
    kernel: Kernel | MachineCode
    members: LaunchDescription
    cc: str | None = None

    @property
    def is_large(self) -> bool:
        """Whether host code gives a size that takes long to be run."""
        n = self.members.n
        if n is None or n.origin is not Origin.HOST or int(n.value) <= LEAST_ELEMENTS:
            return False
        from gpusim.launch.arguments import ArraySpec

        configured, values = self.bare()
        threads = configured.launch.blocks * configured.launch.threads_per_block
        elements = sum(one.size for one in values if isinstance(one, ArraySpec))
        from gpusim.cuda_cpp.host_code import OPEN

        size = self.chosen.size
        is_open = size is not None and size[0] == OPEN
        most = MOST_THREADS_OF_OPEN_SIZE if is_open else MOST_THREADS
        return threads > most or elements > MOST_ELEMENTS

    def halved(self) -> FileLaunch:
        """Return the launch for half of the elements."""
        assert self.members.n is not None
        n = replace(self.members.n, value=str(int(self.members.n.value) // 2))
        chosen = Namespace(**{**vars(self.chosen), "n": n.value})
        return FileLaunch(chosen, self.kernel, replace(self.members, n=n), self.cc)

    def of_its_size(self) -> FileLaunch:
        """Return the launch of a kernel with n and a typed block in place of its constants."""
        from gpusim.sass.kernels import CodeKernel, CudaSource

        kernel, constants = self.kernel, self._constants()
        if not (constants and isinstance(kernel, CodeKernel)):
            return self
        file = kernel.file
        if isinstance(file, CudaSource):
            for constant, value in constants.items():
                file = file.with_constant(constant, value)
            kernel = file[kernel.__name__]
        return FileLaunch(self.chosen, kernel, self.members, self.cc)

    def _constants(self) -> dict[Root, str]:
        """Return the constants of the source that the launch has other values for.

        A block of two sizes for one constant leaves it as it is.
        """
        from gpusim.cli import inputs

        found: dict[Root, str] = {}
        block, roots = self.members.block, self.chosen.block_sizes
        if block is not None and block.origin is not Origin.HOST:
            sizes = list(map(str, inputs.sizes(block.value, "the block")))
            if len(sizes) == len(roots):
                pairs = {(root, one) for root, one in zip(roots, sizes, strict=True) if root}
                found = dict(pairs) if len(dict(pairs)) == len(pairs) else {}
        if self.chosen.size is not None:
            found[self.chosen.size] = self.chosen.n
        return found

    @cached_property
    def description(self) -> LaunchDescription:  # type: ignore[override]
        """The launch's members, with the fillings that are assumed."""
        return self.members.with_data(self.assumed)

    @property
    def explicit(self) -> Namespace:
        """The options with every filling that is assumed, but for zeros, written out."""
        from gpusim.cli.arguments import ZEROS, parted_by_name

        texts = list(self.chosen.arg or ())
        names = [parted_by_name(text)[0] for text in texts]
        order = named_in_order(names, self.kernel.source.parameters)
        fillings = [self.assumed.get(name, ZEROS) for name in order]
        pairs = zip(texts, fillings, strict=True)
        written = [text if filling == ZEROS else f"{text}={filling}" for text, filling in pairs]
        return Namespace(**{**vars(self.chosen), "arg": written or None})

    def bare(self) -> tuple[ConfiguredKernel, Arguments]:
        """Return kernel and arguments, without elements where none are given."""
        return self.configured, self._values({})

    def filled(self) -> tuple[ConfiguredKernel, Arguments]:
        """Return kernel and arguments; arrays without a filling have the assumed one."""
        return self.configured, self._values(self.assumed)

    @cached_property
    def configured(self) -> ConfiguredKernel:
        """The kernel with its grid and block."""
        from gpusim.cli import inputs

        block = inputs.sizes(self.chosen.block, "the block")
        grid = grid_of(self.chosen.grid, sizes_given(self.chosen))
        cluster = inputs.sizes(self.chosen.cluster or "1", "the cluster")
        return self.kernel[grid, block, 0, self._dynamic_bytes, cluster]

    @property
    def _dynamic_bytes(self) -> int:
        from gpusim.cli import inputs
        from gpusim.cli.expressions import is_expression, value_of

        given, names = self.chosen.shared_bytes or "0", sizes_given(self.chosen)
        if is_expression(given, names):
            return value_of(given, names)
        return inputs.count(given, "--shared-bytes", least=0)

    @cached_property
    def assumed(self) -> Mapping[str, str]:
        """The fillings of arrays for which nothing is given, by parameter."""
        from gpusim.cli.arguments import fillings

        return fillings(self.configured, self._values({}), self.cc)

    def _values(self, data: Mapping[str, str]) -> Arguments:
        return own_values(self.kernel, self.chosen, data)

    def job(self) -> Job:
        """Return the launch; elements are assumed where its course depends on them."""
        from gpusim.prediction.sweeps.jobs import own_job

        configured, values = self.bare()
        return own_job(configured, values, lambda: self.filled()[1])


def resolved(
    chosen: Namespace, *, kernel: Kernel | MachineCode | None = None, is_timed: bool = False
) -> CatalogueLaunch | FileLaunch:
    """Return the launch that options describe; InputError where a member is missing.

    A `kernel` that is known is not read again. `is_timed` says whether it is predicted: a size that
    nothing gives is larger then.
    """
    if Reference.of(chosen.kernel).file:
        return of_a_file(chosen, kernel, is_timed=is_timed)
    return _of_the_catalogue(chosen, is_timed)


def kernel_and_types(chosen: Namespace) -> tuple[Kernel | MachineCode, Arguments]:
    """Return a kernel and its arguments without elements, however it may be launched."""
    if not Reference.of(chosen.kernel).file:
        setup = _of_the_catalogue(chosen, is_timed=False).selection.request.setup()
        return setup.kernel, list(setup.specs)
    refuse(_given(chosen, OF_THE_CATALOGUE), f"{chosen.kernel} takes its data from --arg")
    kernel = Reference.of(chosen.kernel).made(chosen)
    complete, _ = completed(chosen, kernel)
    return kernel, own_values(kernel, complete, {})


def _of_the_catalogue(chosen: Namespace, is_timed: bool) -> CatalogueLaunch:
    from gpusim.catalogue import find
    from gpusim.cli.selection import selected

    refuse(_given(chosen, OF_FILES), "a kernel of the catalogue makes its own arguments")
    selection = selected(find(chosen.kernel), chosen, is_timed=is_timed)
    described = by_its_rule(selection.request, chosen)
    return CatalogueLaunch(selection, described, getattr(chosen, "passes", "one"))


def by_its_rule(request: Request, chosen: Namespace) -> LaunchDescription:
    """Return the description of a launch of the catalogue, with the options that were given."""
    setup = request.setup()
    return LaunchDescription(
        request.kernel,
        n=_member(chosen, "n", setup.n, Origin.DEFAULT),
        grid=_member(chosen, "grid", setup.grid, Origin.RULE),
        block=_member(chosen, "block", setup.block, Origin.RULE),
        cluster=_member(chosen, "cluster", setup.cluster, Origin.RULE)
        if setup.entry.default_cluster
        else None,
        device=device_member(chosen),
    )


def _cc(chosen: Namespace) -> str | None:
    """Return the compute capability that the command compiles for, None where it is not one."""
    from gpusim.cli.timing import device_of

    cc, device = getattr(chosen, "cc", None), getattr(chosen, "device", None)
    if cc is not None or device is None or "," in device:
        return cc
    return str(device_of(device, None).cc)


def _member(chosen: Namespace, name: str, value: object, otherwise: Origin) -> Member:
    is_given = getattr(chosen, name, None) is not None
    return Member(str(value), origin_of(chosen, name) if is_given else otherwise)


def origin_of(chosen: Namespace, name: str) -> Origin:
    """Return whether an option was typed, or is in the project's table."""
    return Origin.PROJECT if name in getattr(chosen, "of_project", ()) else Origin.TYPED


def device_member(chosen: Namespace) -> Member | None:
    """Return the device of a command, typed or its default; None for a command without one."""
    name = getattr(chosen, "device", None)
    if name is None:
        return None
    said = {*getattr(chosen, "given", ()), *getattr(chosen, "of_project", ())}
    return Member(name, origin_of(chosen, "device") if "device" in said else Origin.DEFAULT)


def refuse(options: Mapping[str, Any], because: str) -> None:
    """Raise InputError where one of these options is given."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"{', '.join(given)} cannot be given here: {because}")


def _given(chosen: Namespace, options: Mapping[str, str]) -> dict[str, Any]:
    return {flag: getattr(chosen, name, None) for flag, name in options.items()}


# -- kernels of files ----------------------------------------------------------------------


def of_a_file(
    chosen: Namespace, kernel: Kernel | MachineCode | None = None, *, is_timed: bool = True
) -> FileLaunch:
    """Return the launch of a kernel in a file; InputError where a member is missing.

    A size of host code is halved until it is quickly run, but where it `is_timed`.
    """
    refuse(_given(chosen, OF_THE_CATALOGUE), f"{chosen.kernel} takes its data from --arg")
    if getattr(chosen, "passes", "one") != "one":
        raise InputError(f"--passes all is for reductions of the catalogue, not {chosen.kernel}")
    kernel = Reference.of(chosen.kernel).made(chosen) if kernel is None else kernel
    complete, described = completed(chosen, kernel)
    missing = _missing(kernel, complete)
    if missing:
        raise InputError(missing)
    if chosen.n is not None and not depends_on("n", complete):
        raise InputError(
            f"-n is given, but no --arg of {chosen.kernel} uses n, nor does --grid; write for "
            "example --arg 'float32[n]' and --grid 'ceil(n/block)'"
        )
    made = FileLaunch(complete, kernel, described, _cc(chosen))
    while not is_timed and made.is_large:
        made = made.halved()
    return made.of_its_size()


def _has_all(chosen: Namespace, kept: FileLaunchOptions | None) -> bool:
    """Return whether grid, block and arguments are typed, or in the comment."""
    held = {} if kept is None else kept.options
    return all(
        getattr(chosen, name, None) is not None or name in held for name in ("grid", "block", "arg")
    )


def completed(
    chosen: Namespace, kernel: Kernel | MachineCode
) -> tuple[Namespace, LaunchDescription]:
    """Return options with those that the kernel's file has for it, and where each is from."""
    from gpusim.cli import inputs
    from gpusim.cli.launch_examples import constants_of_block

    parameters = kernel.source.parameters
    reference = Reference.of(chosen.kernel)
    kept = reference.launch
    found = [] if kept is None else [kept]
    if not _has_all(chosen, kept):
        from gpusim.cli.host_launches import host_launch

        of_host = host_launch(kernel, getattr(chosen, "block", None))
        found += [] if of_host is None else [of_host]
    members: dict[str, Member] = {}
    for name in MEMBERS:
        given = getattr(chosen, name, None)
        if given is not None:
            members[name] = Member(str(given), origin_of(chosen, name))
        for one in found if given is None else ():
            if name in one.options:
                members.setdefault(name, Member(str(one.options[name]), one.origin, one.line))
    if "n" in members:
        members["n"] = replace(
            members["n"], value=str(inputs.count(members["n"].value, most=MAX_ARRAY))
        )
    origin = origin_of(chosen, "arg")
    typed = [_named(text, origin) for text in getattr(chosen, "arg", None) or ()]
    first = next((one for one in found if one.arguments), None)
    held = [] if first is None else [_named(o, first.origin, first.line) for o in first.arguments]
    given = _merged(typed, held, parameters)
    texts = [member.value if name is None else f"{name}={member.value}" for name, member in given]
    order = named_in_order([name for name, _ in given], parameters)
    described = LaunchDescription(
        f"{reference.file}:{kernel.__name__}",
        members.get("n"),
        members.get("grid"),
        members.get("block"),
        members.get("shared_bytes"),
        members.get("cluster"),
        arguments={name: member for name, (_, member) in zip(order, given, strict=True)},
        device=device_member(chosen),
    )
    before = getattr(chosen, "described", None)
    described = described if before is None else described.with_origins_of(before)
    options = {name: one.value for name, one in members.items()} | {"arg": texts or None}
    size = next((one.size for one in found if "n" in one.options), None)
    sizes = next((one.block_sizes for one in found if one.block_sizes), ())
    if not sizes and kept is not None:
        sizes = constants_of_block(kernel, str(kept.options.get("block", "")))
    constants = {"size": size, "block_sizes": sizes}
    return Namespace(**{**vars(chosen), **options, **constants}), described


Given = tuple[str | None, Member]  # an argument with the name of its parameter, if it has one


def _named(text: str, origin: Origin, line: int | None = None) -> Given:
    from gpusim.cli.arguments import parted_by_name

    name, value = parted_by_name(text)
    return name, Member(value, origin, line)


def named_in_order(names: Sequence[str | None], parameters: Sequence[str]) -> list[str]:
    """Return the parameter of each argument, "" where there are more than parameters.

    Arguments without a name take the parameters that are left, in order.
    """
    left = iter([name for name in parameters if name not in names])
    return [name if name is not None else next(left, "") for name in names]


def _merged(typed: list[Given], kept: list[Given], parameters: Sequence[str]) -> list[Given]:
    """Return the arguments of a launch: typed ones by name replace single ones of the file."""
    if not typed or not kept or not all(name for name, _ in typed):
        return typed or kept
    replaced = dict(typed)
    order = named_in_order([name for name, _ in kept], parameters)
    made: list[Given] = [
        (name, replaced.pop(name)) if name in replaced else one
        for name, one in zip(order, kept, strict=True)
    ]
    return [*made, *replaced.items()]


def lacking(kernel: Kernel | MachineCode, chosen: Namespace) -> tuple[list[str], list[str]]:
    """Return which of grid and block a launch lacks, and the parameters without an argument."""
    from gpusim.cli.arguments import argument, bound

    names, sizes = kernel.source.parameters, sizes_given(chosen)
    described = [argument(one, names=sizes) for one in chosen.arg or ()]
    given = [one.name for one in described if one.name is not None]
    if not set(given) <= set(names):
        bound(described, names, kernel.__name__)  # says which is unknown
    left = [name for name in names if name not in given][len(described) - len(given) :]
    return [flag for flag in ("grid", "block") if getattr(chosen, flag, None) is None], left


def example_words(kernel: Kernel | MachineCode, chosen: Namespace) -> list[str]:
    """Return options with an example of each member that a launch lacks."""
    from gpusim.cli.launch_examples import example_of

    example, (_, left) = example_of(kernel), lacking(kernel, chosen)
    if made := next((name for name in left if not example.arguments[name]), None):
        raise InputError(
            f"{kernel.__name__}: {made} is a texture, a surface, or an array of addresses, "
            "made by a program: run that program, as in gpusim check -- ./program"
        )
    words = [word for name in left for word in ("--arg", f"{name}={example.arguments[name]}")]
    shape = ("grid", "block", "shared_bytes")
    given = {name: getattr(chosen, name, None) is not None for name in shape}
    return [*example.options(given), *words]


def _missing(kernel: Kernel | MachineCode, chosen: Namespace) -> str:
    """Return everything that a launch lacks, with a command line that has it; "" for nothing."""
    from gpusim.cli.launch_examples import command_line, example_of, parameters_of

    lacks, left = lacking(kernel, chosen)
    if not lacks and not left:
        return ""
    types = {one.name: one for one in parameters_of(kernel)}
    wanted = [f"--{flag}" for flag in lacks]
    if left:
        wanted.append(f"--arg for {', '.join(str(types[name]) for name in left)}")
    words = [word for one in chosen.arg or () for word in ("--arg", one)]
    for name in ("grid", "block"):
        given = getattr(chosen, name)
        words += ["--" + name, given] if given is not None else []
    words += ["-n", chosen.n] if chosen.n is not None else []
    words += example_words(kernel, chosen)
    command = getattr(chosen, "command", None) or "trace"
    mark = "#" if chosen.kernel.partition(":")[0].endswith(".py") else "//"
    what = "has no launch rule" if lacks else "lacks arguments"
    return (
        f"{chosen.kernel} {what}; give {_listed(wanted)}, for example\n"
        f"  {command_line(command, chosen.kernel, words)}\n"
        "or keep the launch in the file, in a comment before the kernel:\n"
        f"  {mark} {example_of(kernel).comment}"
    )


def _listed(words: Sequence[str]) -> str:
    """Return "a", "a and b", or "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def sizes_given(chosen: Namespace) -> dict[str, int]:
    """Return the sizes for expressions in the grid and in arguments: n, and the block's threads."""
    from gpusim.cli import inputs

    names = {}
    if getattr(chosen, "n", None) is not None:
        names["n"] = inputs.count(str(chosen.n), most=MAX_ARRAY)
    if getattr(chosen, "block", None) is not None:
        names["block"] = math.prod(inputs.sizes(str(chosen.block), "the block"))
    return names


def grid_of(text: str, names: Mapping[str, int]) -> tuple[int, ...]:
    """Return a grid written as 64, 16x16 or with expressions: ceil(n/block), ceil(n/16)xn."""
    from gpusim.cli import inputs
    from gpusim.cli.expressions import is_expression, parts_of, value_of
    from gpusim.host.files import shown

    parts = parts_of(text)
    if not any(is_expression(part, names) for part in parts):
        return inputs.sizes(text, "the grid")
    if len(parts) != len(parts_of(text, commas=False)):
        raise InputError(f"the grid is {shown(text)!r}; its sizes are written with x between them")
    sizes = tuple(value_of(part, names) for part in parts)
    if len(sizes) > 3:
        raise InputError(f"the grid has one to three sizes, not {len(sizes)}")
    return sizes


def depends_on(name: str, chosen: Namespace) -> bool:
    """Return whether the grid or an argument uses a size."""
    from gpusim.cli.expressions import parts_of

    word = re.compile(rf"(?<!\w){name}(?!\w|=)")
    sizes = parts_of(chosen.grid or "")
    return any(word.search(text) for text in [*(chosen.arg or []), *sizes])


def own_values(
    kernel: Kernel | MachineCode, chosen: Namespace, data: Mapping[str, str]
) -> Arguments:
    """Return a kernel's arguments in order; arrays without a filling have that of `data`, or none.

    `data` are fillings by parameter.
    """
    from gpusim.cli.arguments import argument, bound, parted_by_name

    names, parameters = sizes_given(chosen), kernel.source.parameters
    texts = list(chosen.arg or ())
    order = named_in_order([parted_by_name(text)[0] for text in texts], parameters)
    described = [
        argument(text, filling=data.get(name, ""), names=names)
        for name, text in zip(order, texts, strict=True)
    ]
    return bound(described, parameters, kernel.__name__)
