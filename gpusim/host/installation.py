"""The command that adds an extra to gpusim, as it was installed."""

from __future__ import annotations

import json
import shlex
from urllib.parse import urlsplit
from urllib.request import url2pathname

NAME = "gpusim"


def install(extra: str) -> str:
    """Return `pip install ...` for an extra: from a folder, a repository, or by the name.

    pip records in direct_url.json where a distribution came from (PEP 610).
    """
    return f"pip install {_target(_origin(), extra)}"


def _target(origin: dict[str, object], extra: str) -> str:
    url = str(origin.get("url", ""))
    if "dir_info" in origin:
        folder = url2pathname(urlsplit(url).path)
        is_editable = isinstance(about := origin["dir_info"], dict) and about.get("editable")
        return f"{'-e ' if is_editable else ''}{shlex.quote(f'{folder}[{extra}]')}"
    if isinstance(about := origin.get("vcs_info"), dict):
        return shlex.quote(f"{NAME}[{extra}] @ {about.get('vcs', 'git')}+{url}")
    return shlex.quote(f"{NAME}[{extra}]")


def _origin() -> dict[str, object]:
    """Return what pip recorded, {} for a distribution of an index or none at all."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    found: dict[str, object] = json.loads(text) if text else {}
    return found
