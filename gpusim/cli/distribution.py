"""Options of commands with many predictions: where they are made, and whether rows are kept."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from gpusim.cli.options import Option

DISTRIBUTION = (
    Option("--workers", "worker processes, at most one for each core", "N"),
    Option(
        "--dask", "a cluster: the address of its scheduler, or local (extra dask)", "ADDRESS", None
    ),
    Option("--no-cache", "predict every row again, and keep none for later sweeps"),
)


def distribution(chosen: Namespace) -> dict[str, Any]:
    """Return the settings of `sweep` for these options."""
    from gpusim.cli.inputs import count

    return {
        "workers": count(chosen.workers, "--workers", most=1024) if chosen.workers else None,
        "cluster": chosen.dask,
        "cached": not chosen.no_cache,
    }
