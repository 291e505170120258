"""The documents that commands print are those that `icl list format=schema` describes."""

import pytest

from icl.cli.schema import DIALECT, DOCUMENTS
from tests.commands import Run
from tests.documents import fits


def test_schemas_are_printed(icl: Run) -> None:
    found = icl("list", "format=schema").json
    assert found["$schema"] == DIALECT and found["$defs"] == DOCUMENTS


def test_keys_of_a_document_are_required(icl: Run, tiny: Run) -> None:
    """Drop each key of a document: its schema refuses it. `Result.json` validates every other document."""
    documents = {"check": icl("check", "check=ahn/theorem1", "format=json").json,
                 "train": tiny("format=json").json, "runs": icl("runs", "format=json").json}  # fmt: skip
    for name, document in documents.items():
        for key in DOCUMENTS[name]["required"]:
            assert not fits(DOCUMENTS[name], {k: v for k, v in document.items() if k != key}), key


@pytest.mark.parametrize(
    "key, wrong", [("verdict", "true"), ("settings", None), ("seconds", "1"), ("cached", 1)]
)
def test_what_is_no_such_document(icl: Run, key: str, wrong: object) -> None:
    document = icl("check", "check=ahn/theorem1", "format=json").json
    assert not fits(DOCUMENTS["check"], document | {key: wrong})
