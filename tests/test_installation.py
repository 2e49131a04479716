"""Messages name the command that adds an extra to gpusim as it was installed."""

from __future__ import annotations

from typing import Any

import pytest

from gpusim.host import installation


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({}, "pip install 'gpusim[plot]'"),
        (
            {"url": "file:///home/me/gpusim", "dir_info": {}},
            "pip install '/home/me/gpusim[plot]'",
        ),
        (
            {"url": "file:///home/me/my%20gpusim", "dir_info": {"editable": True}},
            "pip install -e '/home/me/my gpusim[plot]'",
        ),
        (
            {"url": "https://example.org/gpusim", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            "pip install 'gpusim[plot] @ git+https://example.org/gpusim'",
        ),
    ],
)
def test_an_extra_is_installed_from_where_gpusim_came_from(
    origin: dict[str, Any], command: str
) -> None:
    assert f"pip install {installation._target(origin, 'plot')}" == command


def test_the_record_of_pip_is_read() -> None:
    command = installation.install("plot")
    assert command.startswith("pip install ")
    assert "[plot]" in command
