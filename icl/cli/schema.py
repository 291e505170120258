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
_SUMMARY = _list(_object({
    "overrides": ANY, "metric": TEXT, "mean": MAYBE, "low": MAYBE, "high": MAYBE, "count": WHOLE,
}))  # fmt: skip
_SWEEP = {
    "sweep": TEXT, "name": TEXT, "jobs": WHOLE, "done": WHOLE, "cached": WHOLE, "failed": WHOLE,
    "states": _map(WHOLE), "summary": _SUMMARY, "best": _null_or({"type": "object"}),
    "best_by": {"type": "array"},
    "failures": _list(_object({"overrides": ANY, "error": TEXT, "run_dir": TEXT})), "sweep_csv": TEXT,
    "seconds": NUMBER,
}  # fmt: skip
_WHY = _object({"what": TEXT, "why": TEXT})
_ITEM = _object({"id": TEXT, "title": TEXT, "paper": TEXT, "origin": TEXT, "reference": TEXT, "done": TRUTH})

DOCUMENTS: dict[str, Schema] = {
    "train": _object({
        "run_dir": TEXT, "fingerprint": TEXT, "status": {"enum": ["done", "failed", "interrupted"]},
        "cached": TRUTH, "resumed": TRUTH, "steps": WHOLE, "seconds": NUMBER, "metrics": _map(_METRIC),
        "verdicts": _list(_object({"check": TEXT, "verdict": VERDICT, "expected": VERDICT})),
        "warnings": _list(TEXT), "error": _null_or(TEXT),
    }),
    "check": _object({
        "check": TEXT, "paper": TEXT, "reference": TEXT, "title": TEXT, "origin": TEXT, "claim": TEXT,
        "verdict": VERDICT, "expected": VERDICT,
        "settings": _map(ANY), "measured": _map(ANY), "kinds": _map({"enum": list(KINDS)}),
        "meanings": _map(TEXT), "routes": _map(_ROUTE), "bound": _BOUND, "control": _CONTROL,
        "sentence": TEXT, "control_sentence": TEXT, "remarks": _list(TEXT), "notes": _list(TEXT),
        "inputs": _list({"type": "object"}), "record": _null_or(TEXT), "seconds": NUMBER, "cached": TRUTH,
    }),
    "figure": _object({
        "figure": TEXT, "scale": TEXT, "files": _map(TEXT), "claims": _list(_CLAIM), "runs": _list(TEXT),
        "seconds": NUMBER, "cached": TRUTH,
        "left": _list(TEXT),  # where hours= were over
        "budget": _object({"name": TEXT, "steps": _map(WHOLE), "paper": _map(WHOLE)}),
    }, optional=["left", "budget"]),
    "train -m": _object(_SWEEP | {"results": _list({"type": "object"})}),
    "sweep": _object(_SWEEP),
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
        "checks": ANY, "figures": ANY, "failures": {"type": "array"}, "skipped": ANY, "left": _list(TEXT),
        "report": _null_or(TEXT), "seconds": NUMBER,
    }, optional=["left"]),
    "report": _object({"report": TEXT, "checks": WHOLE, "figures": WHOLE, "seconds": NUMBER}),
    "archive": _object({
        "folder": TEXT, "files": _list(TEXT), "new": _list(TEXT), "bytes": WHOLE, "sha256": TEXT,
    }),
    "verify": _object({
        "archive": TEXT, "agrees": _list(TEXT), "differs": _list(_WHY), "missing": _list(TEXT),
        "not_recomputed": _list(_WHY), "seconds": NUMBER,
    }),
    "publish": _object({"folder": TEXT, "files": _list(TEXT), "claims": WHOLE, "sha256": TEXT}),
    "clean": _object({
        "found": _list(_object({"path": TEXT, "why": TEXT, "bytes": WHOLE})), "removed": _list(TEXT),
        "bytes": WHOLE,
    }),
    "bench": _object({
        "bench": TEXT, "rows": _list({"type": "object"}), "machine": {"type": "object"}, "seconds": NUMBER,
    }),
}  # fmt: skip


def schema() -> Schema:
    """Return one schema with a definition for each command's document."""
    return {"$schema": DIALECT, "title": "Documents of icl, format=json", "$defs": DOCUMENTS}
