"""The compiler of an installed CUDA toolkit, whose folder has more than the wheels' has."""

from __future__ import annotations

from pathlib import Path

from gpusim.sass.worker import second_halves


def test_archives_for_static_linking_are_not_loaded(tmp_path: Path) -> None:
    names = (
        "libnvrtc-builtins.so.13.0",
        "libnvrtc-builtins.alt.so.13.0",
        "libnvrtc-builtins_static.a",
        "libnvrtc.so.13",
    )
    for name in names:
        (tmp_path / name).touch()
    assert [one.name for one in second_halves(tmp_path)] == ["libnvrtc-builtins.so.13.0"]
