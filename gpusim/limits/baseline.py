"""A baseline: the measures of a project's launches in a file, which limits compare with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusim.errors import InputError
from gpusim.host import files
from gpusim.host.files import shown

VERSION = 1


@dataclass(frozen=True)
class Recorded:
    """The measures of a launch, and the code generator and device that they were found with."""

    generator: str
    device: str
    measures: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        return {"generator": self.generator, "device": self.device, "measures": self.measures}


def read(path: Path) -> dict[str, Recorded]:
    """Return the launches of a baseline by name; InputError where the file is none."""
    tree = files.parsed_json(path)
    if not isinstance(tree, dict) or tree.get("schema_version") != VERSION:
        raise InputError(f"{shown(path)}: is not a baseline of this version; write it again with "
                         "gpusim ci --update-baseline")  # fmt: skip
    try:
        return {name: _recorded(one) for name, one in tree["launches"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(
            f"{shown(path)}: is damaged; write it again with gpusim ci --update-baseline"
        ) from None


def write(path: Path, launches: Mapping[str, Recorded]) -> None:
    """Write a baseline, a line for each measure, in the order of launches."""
    document = {
        "schema_version": VERSION,
        "launches": {name: one.to_dict() for name, one in launches.items()},
    }
    files.write_whole(path, json.dumps(document, indent=1) + "\n")


def _recorded(tree: Mapping[str, Any]) -> Recorded:
    measures = {str(name): float(value) for name, value in tree["measures"].items()}
    return Recorded(str(tree["generator"]), str(tree["device"]), measures)
