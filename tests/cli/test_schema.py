"""The published schema is that of the types, and refuses what no command prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from conftest import Run

from gpusim.cli.app import MODULES
from gpusim.reports.documents import DOCUMENTS
from gpusim.version import SCHEMA_VERSION

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import schema  # noqa: E402  it stands beside the pages
import schemas  # noqa: E402


def test_the_published_schema_is_what_the_types_say() -> None:
    """`python docs/schema.py` writes it anew."""
    pytest.importorskip("msgspec")
    assert schema.PATH.read_text(encoding="utf-8") == schema.text()


def test_every_command_with_json_has_a_document() -> None:
    others = {"file", "device", "explore", "program"}  # of list FILE, devices NAME, ...
    assert DOCUMENTS.keys() - others == MODULES.keys() - {"plot", "report", "grade"}  # files, CSV


def test_a_document_has_its_head_and_no_member_of_another(run: Run) -> None:
    pytest.importorskip("jsonschema")
    _, out, _ = run("list", "--json")
    document = json.loads(out)
    assert list(document)[:2] == ["schema_version", "document"]
    assert (document["schema_version"], document["document"]) == (SCHEMA_VERSION, "list")
    schemas.require_valid(document)
    with pytest.raises(AssertionError, match="'surplus' was unexpected"):
        schemas.require_valid({**document, "surplus": 1})
    del document["kernels"][0]["name"]
    with pytest.raises(AssertionError, match="list: kernels/0: 'name' is a required property"):
        schemas.require_valid(document)
