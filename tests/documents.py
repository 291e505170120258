"""The least that the documents of `format=json` hold: the keys that scripts may rely on."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

_SWEEP = "jobs done cached failed seconds summary sweep_csv"
DOCUMENTS = {
    "train": "run_dir fingerprint status cached resumed steps seconds metrics verdicts",
    "check": "check paper reference claim verdict expected settings measured kinds control notes seconds "
    "cached",
    "figure": "figure scale files claims runs seconds cached",
    "multirun": _SWEEP,
    "sweep": _SWEEP,
    "checks": "checks seconds",
    "figures": "figures seconds",
    "list": "checks experiments figures",
    "runs": "runs",
    "reproduce": "checks figures failures skipped report seconds",
    "report": "report",
    "archive": "folder files bytes sha256",
    "clean": "found removed bytes",
}
_ENTRIES = {  # of what a document holds: a list, or a mapping
    "metrics": "mean by_seed",
    "runs": "run_dir experiment fingerprint status date metrics stale",
    "experiments": "id paper reference done",
}
_PARTS = {"control": "description measured rejected"}


def lacking(kind: str, document: Mapping[str, Any]) -> list[str]:
    """Return the keys that a document lacks."""
    missing = [key for key in DOCUMENTS.get(kind, "").split() if key not in document]
    entries = [(key, _entries(document.get(key)), names) for key, names in _ENTRIES.items()]
    entries += [(key, [document.get(key)], names) for key, names in _PARTS.items()]
    for key, found, names in entries:
        for entry in found:
            if isinstance(entry, Mapping):
                missing += [f"{key}.{name}" for name in names.split() if name not in entry]
    return missing


def _entries(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, Mapping) else list(value or [])


def kind_of(argv: Sequence[str], document: Mapping[str, Any]) -> str:
    """Return which document this command prints."""
    verb = argv[0]
    if "-m" in argv or "--multirun" in argv or (verb == "train" and "jobs" in document):
        return "multirun"
    return f"{verb}s" if verb in ("check", "figure") and f"{verb}s" in document else verb


def read(argv: Sequence[str], out: str) -> Any:
    """Return the one document that this command has printed, which lacks no key."""
    document = json.loads(out)
    if "format=json" in argv:
        assert not lacking(kind_of(argv, document), document)
    return document
