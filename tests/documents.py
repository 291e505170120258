"""The documents that commands print, against the schemas that `icl list format=schema` prints."""

import json
from collections.abc import Sequence
from typing import Any

from icl.cli.schema import DOCUMENTS

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


def schema_of(argv: Sequence[str], document: dict[str, Any]) -> str:
    """Return the name of the schema of the document that this command prints."""
    verb = argv[0]
    if "-m" in argv or "--multirun" in argv or (verb == "train" and "jobs" in document):
        return "train -m"
    if verb == "runs" and argv[1:2] == ["compare"]:
        return "runs compare"
    return f"{verb}, several" if verb in ("check", "figure") and f"{verb}s" in document else verb


def read(argv: Sequence[str], out: str) -> Any:
    """Return the one document that this command has printed, which is of its schema."""
    document = json.loads(out)
    if "format=json" in argv:
        assert fits(DOCUMENTS[schema_of(argv, document)], document)
    return document
