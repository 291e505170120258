"""The documents that commands print are those that `icl list format=schema` describes."""

from typing import Any

import pytest

from icl.cli.schema import DIALECT, DOCUMENTS
from tests.commands import Run

TYPES = {"string": str, "number": (int, float), "integer": int, "boolean": bool, "array": list,
         "object": dict, "null": type(None)}  # fmt: skip
KEYWORDS = {"type", "enum", "anyOf", "$ref", "properties", "required", "items", "additionalProperties"}


def fits(schema: dict[str, Any], value: Any) -> bool:
    """Return whether a value is of a schema, by the keywords that the schemas have."""
    assert set(schema) <= KEYWORDS
    if "$ref" in schema:
        return fits(DOCUMENTS[schema["$ref"].removeprefix("#/$defs/")], value)
    if "anyOf" in schema:
        return any(fits(each, value) for each in schema["anyOf"])
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "type" in schema:
        is_type = isinstance(value, TYPES[schema["type"]])
        if not is_type or (isinstance(value, bool) and schema["type"] in ("number", "integer")):
            return False
    if isinstance(value, list):
        return all(fits(schema.get("items", {}), entry) for entry in value)
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
        named = all(fits(known.get(name, rest), entry) for name, entry in value.items())
        return named and set(schema.get("required", ())) <= set(value)
    return True


def test_schemas_are_printed(icl: Run) -> None:
    found = icl("list", "format=schema").json
    assert found["$schema"] == DIALECT and found["$defs"] == DOCUMENTS


def test_documents_are_of_their_schemas(icl: Run, tiny: Run) -> None:
    check = icl("check", "check=ahn/theorem1", "format=json").json
    several = {"checks": [check], "seconds": 1}
    documents = {"check": check, "check, several": several, "list": icl("list", "format=json").json,
                 "train": tiny("format=json").json, "runs": icl("runs", "format=json").json}  # fmt: skip
    for name, document in documents.items():
        assert fits(DOCUMENTS[name], document), name
        for key in DOCUMENTS[name]["required"]:
            assert not fits(DOCUMENTS[name], {k: v for k, v in document.items() if k != key}), key


@pytest.mark.parametrize(
    "key, wrong", [("verdict", "true"), ("settings", None), ("seconds", "1"), ("cached", 1)]
)
def test_what_is_no_such_document(icl: Run, key: str, wrong: object) -> None:
    document = icl("check", "check=ahn/theorem1", "format=json").json
    assert not fits(DOCUMENTS["check"], document | {key: wrong})
