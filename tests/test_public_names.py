"""Public names are found by `dir()` and by completion, and are loaded when they are used."""

from __future__ import annotations

import subprocess
import sys
from rlcompleter import Completer

import pytest

import gpusim


def said(code: str) -> str:
    """What a fresh interpreter prints."""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.mark.parametrize("name", gpusim.__all__)
def test_a_public_name_is_listed_and_there(name: str) -> None:
    assert name in dir(gpusim)
    assert getattr(gpusim, name) is not None


def test_imports_of_the_package_itself_are_not_listed() -> None:
    assert not {"importlib", "annotations", "TYPE_CHECKING"} & set(dir(gpusim))


@pytest.mark.parametrize(
    ("begun", "whole"),
    [
        ("gpusim.ra", "gpusim.rank("),
        ("gpusim.cu", "gpusim.cuda"),
        ("gpusim.Span", "gpusim.SpanObserver("),
        ("gpusim.cuda.syncth", "gpusim.cuda.syncthreads"),
    ],
)
def test_completion_finds_a_name(begun: str, whole: str) -> None:
    completer = Completer({"gpusim": gpusim})
    found = [completer.complete(begun, place) for place in range(4)]
    assert [one for one in found if one and one.startswith(whole)]


def test_the_package_alone_imports_nothing_else() -> None:
    code = "import sys, gpusim; print(sorted({'numpy', 'typing'} & set(sys.modules)), "
    code += "[name for name in sys.modules if name.startswith('gpusim.')], 'rank' in dir(gpusim))"
    assert said(code) == "[] ['gpusim.version'] True"


def test_the_dialect_is_an_attribute_of_the_package() -> None:
    assert said("import gpusim; print(gpusim.cuda.__name__)") == "gpusim.cuda"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'gpusim' has no attribute 'ranks'"):
        _ = gpusim.ranks
