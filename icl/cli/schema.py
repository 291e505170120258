"""JSON Schemas of the documents that `format=json` prints. Keys are a minimum: a document may have more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icl.verdicts import KINDS, ROUTES, VERDICTS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

TEXT, NUMBER, WHOLE, TRUTH = ({"type": name} for name in ("string", "number", "integer", "boolean"))
VERDICT = {"enum": list(VERDICTS)}


def _null_or(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _map(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def _object(described: Mapping[str, Schema], optional: Sequence[str] = ()) -> Schema:
    required = [name for name in described if name not in optional]
    return {"type": "object", "properties": dict(described), "required": required}


MAYBE = _null_or(NUMBER)  # null: undefined, or not finite
ANY: Schema = {}
_METRIC = _object({"mean": MAYBE, "by_seed": _map(MAYBE)})
_BOUND = _object({"value": MAYBE, "source": TEXT, "of": TEXT, "direction": {"enum": ["<", ">"]}})
_CONTROL = _object({"description": TEXT, "measured": MAYBE, "rejected": TRUTH})
_CLAIM = _object({"claim": TEXT, "measured": ANY, "bound": ANY, "verdict": VERDICT, "expected": VERDICT})
_ROUTE = _object({
    "how": {"enum": list(ROUTES)}, "name": TEXT, "value": ANY, "off": MAYBE, "unit": TEXT, "within": MAYBE,
    "agrees": _null_or(TRUTH), "by": TEXT,
})  # fmt: skip
_ITEM = _object({"id": TEXT, "paper": TEXT, "reference": TEXT, "done": TRUTH})

DOCUMENTS: dict[str, Schema] = {
    "train": _object({
        "run_dir": TEXT, "fingerprint": TEXT, "status": {"enum": ["done", "failed", "interrupted"]},
        "cached": TRUTH, "resumed": TRUTH, "steps": WHOLE, "seconds": NUMBER, "metrics": _map(_METRIC),
        "verdicts": _list(_object({"check": TEXT, "verdict": VERDICT, "expected": VERDICT})),
    }),
    "check": _object({
        "check": TEXT, "paper": TEXT, "reference": TEXT, "claim": TEXT,
        "verdict": VERDICT, "expected": VERDICT,
        "settings": _map(ANY), "measured": _map(ANY), "kinds": _map({"enum": list(KINDS)}),
        "meanings": _map(TEXT), "routes": _map(_ROUTE), "bound": _BOUND, "control": _CONTROL,
        "sentence": TEXT, "notes": _list(TEXT), "seconds": NUMBER, "cached": TRUTH,
    }),
    "figure": _object({
        "figure": TEXT, "scale": TEXT, "files": _map(TEXT), "claims": _list(_CLAIM), "runs": _list(TEXT),
        "seconds": NUMBER, "cached": TRUTH,
    }),
    "train -m": _object({
        "jobs": WHOLE, "done": WHOLE, "cached": WHOLE, "failed": WHOLE, "seconds": NUMBER,
        "summary": _list(_object(
            {"overrides": ANY, "metric": TEXT, "mean": MAYBE, "low": MAYBE, "high": MAYBE}
        )),
        "sweep_csv": TEXT,
    }),
    "check, several": _object({"checks": _list({"$ref": "#/$defs/check"}), "seconds": NUMBER}),
    "figure, several": _object({"figures": _list({"$ref": "#/$defs/figure"}), "seconds": NUMBER}),
    "list": _object({name: _list(_ITEM) for name in ("checks", "experiments", "figures")}),
    "runs": _object({
        "runs": _list(_object({
            "run_dir": TEXT, "experiment": TEXT, "fingerprint": TEXT, "status": TEXT, "date": ANY,
            "differs": _map(ANY), "metrics": _map(ANY), "stale": ANY,
        })),
    }),
    "runs compare": _object({"a": ANY, "b": ANY, "differs": ANY, "metrics": ANY}),
    "reproduce": _object({
        "checks": ANY, "figures": ANY, "failures": {"type": "array"}, "skipped": ANY, "report": TEXT,
        "seconds": NUMBER,
    }),
}  # fmt: skip


def schema() -> Schema:
    """Return one schema with a definition for each command's document."""
    return {"$schema": DIALECT, "title": "Documents of icl, format=json", "$defs": DOCUMENTS}
