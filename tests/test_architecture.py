"""Packages lie in layers, imports run downwards alone, and nothing imports itself by a detour."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import permutations
from pathlib import Path

from source_trees import tree_of

import gpusim
from gpusim.lowering.passes.optimise import PASSES

PACKAGE = Path(gpusim.__file__).parent
# From the ground up: a package imports of the floors below alone. The proof on hardware stands
# above all of them.
FLOORS = [
    {"errors", "pytorch", "typing", "version"},
    {"isa", "host"},
    {"launch", "program", "wasm", "cuda_cpp"},
    {"gpu", "catalogue", "compiler"},
    {"cuda"},
    {"lowering", "sass", "kernels"},
    {"codegen"},
    {"machine"},
    {"tracing", "prediction", "checking"},
    {"advice"},
    {"limits"},
    {"reports"},
    {"driver"},
    {"testing"},
    {"cli"},
]
# Within lowering, from the ground up; what stands beside the packages belongs to no layer.
LOWERING_LAYERS = ["analysis", "passes", "selection", "machine_code"]
APART = set(permutations(("tracing", "prediction", "checking"), 2))
KERNELS_USE = {"cuda", "catalogue", "kernels", "launch", "errors", "typing"}


@cache
def modules() -> dict[str, Path]:
    """Return the file of every module of gpusim by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if parts[:2] != ("gpusim", "validate"):
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def imported() -> dict[str, list[str]]:
    """Return the modules that each module of gpusim imports, wherever in it the imports stand."""
    return {name: sorted(set(imports_of(tree_of(path)))) for name, path in modules().items()}


def imports_of(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            origin = node.module or ""
            whole = (f"{origin}.{alias.name}" for alias in node.names)
            yield from (one if one in modules() else origin for one in whole)


def package_of(module: str) -> str:
    """Return the package or top-level module that a module belongs to."""
    return [*module.split("."), "__init__"][1]


def floor(package: str) -> int:
    """Return the number of a package's floor, counted from the ground."""
    return next(number for number, names in enumerate(FLOORS) if package in names)


@cache
def arrows() -> list[tuple[str, str]]:
    """Return all pairs of a module and a module of gpusim that it imports."""
    return [
        (module, target)
        for module, targets in imported().items()
        if module not in ("gpusim", "gpusim.__main__")
        for target in targets
        if target.startswith("gpusim.")
    ]


def test_every_package_and_module_at_the_top_has_a_floor() -> None:
    there = {package_of(module) for module in modules()} - {"__init__", "__main__"}
    assert there == set().union(*FLOORS)


def test_modules_at_the_top_are_few() -> None:
    beside = {path.stem for path in PACKAGE.glob("*.py")}
    assert beside == {"__init__", "__main__", "cuda", "errors", "typing", "version"}


def test_imports_run_downwards_alone() -> None:
    upward = [
        f"{module} imports {target}"
        for module, target in arrows()
        if package_of(target) != package_of(module)
        and floor(package_of(target)) >= floor(package_of(module))
    ]
    assert upward == []


def test_lowering_runs_from_analyses_up_to_machine_code() -> None:
    inside = [(a.split(".")[2], b.split(".")[2]) for a, b in arrows() if both_in_lowering(a, b)]
    numbers = {name: number for number, name in enumerate(LOWERING_LAYERS)}
    upward = [(a, b) for a, b in inside if a in numbers and numbers.get(b, -1) > numbers[a]]
    assert {a for a, _ in inside} >= set(LOWERING_LAYERS)
    assert upward == []


def both_in_lowering(*modules: str) -> bool:
    """Whether modules lie within the package of lowering, below its door."""
    return all(module.startswith("gpusim.lowering.") for module in modules)


def test_every_pass_bears_the_name_of_its_file() -> None:
    passes = [step for step in PASSES if not step.__module__.endswith(f".{step.__name__}")]
    assert passes == []


def circle(arrows: Iterable[tuple[str, str]]) -> list[str]:
    """Return names that lead back to the first of them, an empty list where none do."""
    graph: dict[str, set[str]] = {}
    for name, target in arrows:
        graph.setdefault(name, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def packages_around(module: str, target: str) -> Iterator[str]:
    """Yield the packages that an import of `target` runs first, but those `module` is in itself."""
    parts = target.split(".")
    around = (".".join(parts[:end]) for end in range(2, len(parts)))
    yield from (package for package in around if not f"{module}.".startswith(f"{package}."))


def test_no_modules_import_each_other_in_a_circle() -> None:
    """So that each can be the first to be imported: a package's `__init__` runs before a module."""
    before = [(a, package) for a, b in arrows() for package in packages_around(a, b)]
    assert circle([*arrows(), *before]) == []


def test_no_packages_import_each_other_in_a_circle() -> None:
    between = [(package_of(module), package_of(target)) for module, target in arrows()]
    assert circle((a, b) for a, b in between if a != b) == []


def test_a_circle_is_found() -> None:
    assert circle([("a", "b"), ("b", "c"), ("c", "b")]) == ["b", "c", "b"]


def test_analyses_that_are_apart_do_not_know_each_other() -> None:
    known = [
        f"{module} imports {target}"
        for module, target in arrows()
        if (package_of(module), package_of(target)) in APART
    ]
    assert known == []


def test_kernels_import_the_dialect_the_catalogue_and_each_other_alone() -> None:
    used = {package_of(b) for a, b in arrows() if package_of(a) == "kernels"}
    assert used <= KERNELS_USE


def test_no_module_takes_the_name_of_what_the_package_offers() -> None:
    for module in pkgutil.walk_packages(gpusim.__path__, "gpusim."):
        if not module.name.startswith(("gpusim.validate", "gpusim.__main__", "gpusim.pytorch.")):
            importlib.import_module(module.name)
    offered = set(gpusim.__all__) - {"__version__", "cuda"}
    assert [name for name in sorted(offered) if not callable(getattr(gpusim, name))] == []


def test_no_wall_clock_decides_how_a_program_runs() -> None:
    """The machine and the facts of a program count steps: the same launch goes the same way."""
    asked = [
        name
        for name, targets in imported().items()
        if package_of(name) in ("machine", "program") and "time" in targets
    ]
    assert asked == []


MOST_LINES = {ast.ClassDef: 400, ast.FunctionDef: 60}
LONGER = {"driver.client.Client", "machine.run"}


def too_long(name: str, tree: ast.Module) -> Iterator[str]:
    """Yield the classes and functions of a module that have more lines than their kind may."""
    for node in ast.walk(tree):
        most = MOST_LINES.get(type(node))
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and most is not None:
            assert node.end_lineno is not None
            if node.end_lineno - node.lineno >= most:
                yield f"{name}.{node.name}".removeprefix("gpusim.")


def test_classes_have_400_lines_and_functions_60_at_most() -> None:
    found = {one for name, path in modules().items() for one in too_long(name, tree_of(path))}
    assert found - LONGER == set()


def test_a_function_of_61_lines_is_too_long() -> None:
    for count, found in ((60, []), (61, ["a.f"])):
        text = "def f():\n" + "    pass\n" * (count - 1)
        assert list(too_long("gpusim.a", ast.parse(text))) == found


def bound_twice(tree: ast.Module) -> list[str]:
    """Return the constants that a module binds a second time: the first is lost to its readers."""
    targets = [
        name.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name) and name.id.isupper()
    ]
    return sorted({one for one in targets if targets.count(one) > 1})


def test_no_module_binds_a_constant_twice() -> None:
    assert bound_twice(ast.parse("MOST = 1\nLEAST, MOST = 2, 3")) == ["MOST"]
    found = {name: bound_twice(tree_of(path)) for name, path in modules().items()}
    assert {name: twice for name, twice in found.items() if twice} == {}
