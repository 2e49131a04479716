"""SVG without invisible elements: half the size of Matplotlib's output."""

from __future__ import annotations

import re

_TAG = re.compile(r"<[^>]*>")
_DECIMALS = re.compile(r"(\d\.\d\d)\d+")
_MARKER = re.compile(r'<path id="(\w+)" d="[^"]*" style="([^"]*)"/>')
_USE = re.compile(r'(<use xlink:href="#(\w+)"[^>]*?) style="([^"]*)"/>')


def lean(picture: str) -> str:
    """Return a picture with two decimals of each coordinate, and each marker's style said once.

    Matplotlib writes six decimals, and at every point again the style that its marker has. Texts
    stand between tags and are left alone.
    """
    rounded = _TAG.sub(lambda tag: _DECIMALS.sub(r"\1", tag[0]), picture)
    styles = dict(_MARKER.findall(rounded))

    def once(use: re.Match[str]) -> str:
        known = styles.get(use[2], "").split("; ")
        own = "; ".join(part for part in use[3].split("; ") if part not in known)
        return f'{use[1]} style="{own}"/>' if own else f"{use[1]}/>"

    return _USE.sub(once, rounded)
