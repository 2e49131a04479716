"""Write docs/schema.json, the JSON Schema of all documents: `python docs/schema.py`.

It is generated from their types, by msgspec, which the extra `test` has.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

from gpusim.reports.documents import DOCUMENTS
from gpusim.version import SCHEMA_VERSION

PATH = Path(__file__).resolve().parent / "schema.json"
sys.path.insert(0, str(PATH.parent.parent))

from validate.documents import DOCUMENTS as OF_VALIDATE  # noqa: E402  a package of the checkout

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """Return one schema: a document is one of those named, and has no member but its own."""
    import msgspec

    references, definitions = msgspec.json.schema_components(
        [*DOCUMENTS.values(), *OF_VALIDATE.values()], ref_template="#/$defs/{name}"
    )
    for one in _objects(definitions):
        one["additionalProperties"] = False
    for one in definitions.values():
        if "description" in one:  # a docstring, as written by msgspec before 0.23
            one["description"] = cleandoc(one["description"])
    return {
        "$schema": DIALECT,
        "title": f"Documents of gpusim, schema version {SCHEMA_VERSION}",
        "oneOf": list(references),
        "$defs": definitions,
    }


def _objects(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield the schemas of objects with named members."""
    if isinstance(tree, dict):
        if tree.get("type") == "object" and "properties" in tree:
            yield tree
        for value in tree.values():
            yield from _objects(value)


def text() -> str:
    """Return the file's content."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
