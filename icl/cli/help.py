"""The texts of `icl --help` and `icl VERB --help`, a screen each, from help.txt; tests run the examples.

In help.txt stand the screen of all verbs, the settings of those that run something, and a block for each
verb: usage, summary, settings, and examples, which are the lines that begin with `icl`.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

QUICK = {"list": "listing", "runs": "runs", "clean": "clean", "archive": "archive"}  # modules without Hydra


class Verb(NamedTuple):
    usage: str
    summary: str
    settings: list[str]
    examples: list[str]


_all, _common, _verbs = (files("icl") / "cli" / "help.txt").read_text(encoding="utf-8").split("----\n")
VERBS = {
    usage.partition(" ")[0]: Verb(
        usage, summary, [x for x in rest if x[:4] != "icl "], [x for x in rest if x[:4] == "icl "]
    )
    for usage, summary, *rest in map(str.splitlines, _verbs.split("\n\n"))
}


def help_of(name: str = "") -> str:
    """Return what there is to say of a verb, or of all."""
    if not name:
        return _all.format(verbs="\n".join(f"  {one:<10} {verb.summary}" for one, verb in VERBS.items()))
    usage, summary, settings, examples = VERBS[name]
    common = ([] if name in QUICK else [_common.rstrip()]) + ["format=text|json        paths.outputs=DIR"]
    shown = ["", "examples:", *(f"  {example}" for example in examples)]
    return "\n".join([f"usage: icl {usage}", "", summary, "", *settings, *common, *shown])
