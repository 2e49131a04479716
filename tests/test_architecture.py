"""The house has floors: a module imports only from floors below its own."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "gpusim"
FLOORS = [
    {"errors"},
    {"isa", "memory", "launch", "events", "arguments", "files", "device", "journal"},
    {"cuda", "compiler", "lowering", "programs", "catalogue", "kernels"},
    {"machine"},
    {"tracing", "prediction"},
    {"reports"},
]


def floor(module: str) -> int:
    """Return a module's floor; what is not named is above all."""
    for number, names in enumerate(FLOORS):
        if module in names:
            return number
    return len(FLOORS) + (module in {"cli", "__main__"})


def imported(tree: ast.AST) -> set[str]:
    """Return the modules and packages of gpusim that a file imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            parts = node.module.split(".")
            if parts[0] == "gpusim":
                found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("gpusim.")}
    return found


def test_no_module_imports_from_a_floor_above() -> None:
    upward = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts == ("__init__",):
            continue
        for target in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if floor(target) > floor(parts[0]):
                upward.append(f"{path.name} imports gpusim.{target}")
    assert upward == []


def test_kernels_import_the_dialect_the_catalogue_and_each_other_alone() -> None:
    allowed = {"cuda", "catalogue", "oracle", "kernels", "launch", "errors"}
    for path in sorted((PACKAGE / "kernels").glob("*.py")):
        assert imported(ast.parse(path.read_text(encoding="utf-8"))) <= allowed, path.name


def test_no_modules_of_the_compiler_or_the_machine_import_each_other_in_a_circle() -> None:
    for package in ("compiler", "machine"):
        imports = {path.stem: siblings(path) for path in (PACKAGE / package).glob("*.py")}
        while free := {name for name, targets in imports.items() if not targets & set(imports)}:
            imports = {name: imports[name] for name in imports.keys() - free}
        assert sorted(imports) == [], package


def siblings(path: Path) -> set[str]:
    """Return the modules of its own package that a file imports."""
    package = f"gpusim.{path.parent.name}"
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == package:
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"{package}."):
            found.add(str(node.module).split(".")[2])
    return found
