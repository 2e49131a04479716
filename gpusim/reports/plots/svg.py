"""SVG without invisible elements: half the size of Matplotlib's output."""

from __future__ import annotations

import re

_TAG = re.compile(r"<[^>]*>")
_DECIMALS = re.compile(r"(\d\.\d\d)\d+")
_MARKER = re.compile(r'<path id="(\w+)" d="[^"]*" style="([^"]*)"/>')
_USE = re.compile(r'(<use xlink:href="#(\w+)"[^>]*?) style="([^"]*)"/>')


def lean(picture: str) -> str:
    """Return a picture with two decimals of each coordinate, and each marker's style said once.

    Matplotlib writes six decimals, and at every point again the style that its marker has, or that
    all points of the marker have. Texts stand between tags and are left alone.
    """
    rounded = _TAG.sub(lambda tag: _DECIMALS.sub(r"\1", tag[0]), picture)
    styles = dict(_MARKER.findall(rounded))
    of_points: dict[str, set[str]] = {}

    def own(use: re.Match[str]) -> str:
        known = styles.get(use[2], "").split("; ")
        return "; ".join(part for part in use[3].split("; ") if part not in known)

    def once(use: re.Match[str]) -> str:
        mine = "" if use[2] in common else own(use)
        return f'{use[1]} style="{mine}"/>' if mine else f"{use[1]}/>"

    def whole(marker: re.Match[str]) -> str:
        name, style = marker[1], marker[2]
        return marker[0].replace(style, f"{style}; {common[name]}") if name in common else marker[0]

    for use in _USE.finditer(rounded):
        of_points.setdefault(use[2], set()).add(own(use))
    common = {
        name: found.pop()
        for name, found in of_points.items()
        if name in styles and len(found) == 1 and "" not in found
    }
    return _MARKER.sub(whole, _USE.sub(once, rounded))
