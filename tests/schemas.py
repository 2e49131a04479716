"""The schema of documents, compiled once: what is valid, and what is not."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from gpusim.reports.documents import DOCUMENTS

PATH = Path(__file__).resolve().parent.parent / "docs" / "schema.json"


@cache
def validator(name: str) -> Any:
    """Return the validator of a document by its name."""
    from jsonschema import Draft202012Validator

    definitions = json.loads(PATH.read_text(encoding="utf-8"))["$defs"]
    reference = f"#/$defs/{type_of(name).__name__}"
    return Draft202012Validator({"$ref": reference, "$defs": definitions})


def type_of(name: str) -> type:
    """Return the type of a document by its name."""
    if name in DOCUMENTS:
        return DOCUMENTS[name]
    from validate.documents import DOCUMENTS as OF_VALIDATE

    return OF_VALIDATE[name]


def require_valid(document: dict[str, Any]) -> None:
    """Raise an error that names the member where a document does not keep to the schema."""
    for error in validator(document["document"]).iter_errors(document):
        place = "/".join(map(str, error.absolute_path))
        raise AssertionError(f"{document['document']}: {place}: {error.message[:300]}")
