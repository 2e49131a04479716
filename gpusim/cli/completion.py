"""Completion of command lines in a shell, by argcomplete where it is installed.

`eval "$(register-python-argcomplete gpusim)"` in bash or zsh switches it on.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

LINE = "COMP_LINE"  # set by the shell
FILES = ("cu", "cuh", "cubin", "py")


def command_asked(known: Collection[str]) -> list[str]:
    """Return the subcommand that stands on the line to be completed, all known where none does."""
    words = os.environ.get(LINE, "").split()
    return [words[1]] if len(words) > 2 and words[1] in known else list(known)


def complete(parser: argparse.ArgumentParser) -> None:
    """Print what may follow, and end the process; nothing without argcomplete."""
    try:
        argcomplete = importlib.import_module("argcomplete")
    except ImportError:
        return
    _give_completers(parser)
    argcomplete.autocomplete(parser)


def _give_completers(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _give_completers(below)
        elif action.metavar in VALUES:
            action.completer = VALUES[str(action.metavar)]  # type: ignore[attr-defined]


def _kernels(prefix: str, **_: Any) -> Iterable[str]:
    from gpusim.catalogue import entries
    from gpusim.cli.project import found_project

    files = importlib.import_module("argcomplete.completers").FilesCompleter(FILES)
    project = found_project()
    names = [entry.name for entry in entries()] + (project.names if project is not None else [])
    return [*names, *files(prefix)]


def _gpus(**_: Any) -> Iterable[str]:
    from gpusim.gpu.device import names

    return names()


def _one_of(*values: str) -> Callable[..., Iterable[str]]:
    return lambda **_: values


# Completers by the name of a value in the help.
VALUES: Mapping[str, Callable[..., Iterable[str]]] = {
    "KERNEL": _kernels,
    "GPU": _gpus,
    "CODE": _one_of("lowering", "nvcc", "auto"),
    "OP": _one_of("sum", "max", "min"),
    "L2": _one_of("cold", "warm", "dirty"),
    "PASSES": _one_of("one", "all"),
    "FORMAT": _one_of("text", "json", "sarif", "github", "gcc"),
    "THEME": _one_of("light", "dark"),
}
