"""The texts of `icl --help` and `icl VERB --help`, a screen each, from help.txt; tests run the examples.

In help.txt stand the screen of all verbs, the settings of those that run something, and a block for each
verb: usage, summary, settings, and examples, which are the lines that begin with `icl`.
"""

from importlib.resources import files

QUICK = {  # modules without Hydra
    "list": "listing", "runs": "runs", "clean": "clean", "archive": "archive", "dashboard": "dashboard",
}  # fmt: skip


_all, _common, _verbs = (files("icl") / "cli" / "help.txt").read_text(encoding="utf-8").split("----\n")
VERBS = {block.partition(" ")[0]: block.splitlines() for block in _verbs.split("\n\n")}  # lines by name


def help_of(name: str = "") -> str:
    """Return what there is to say of a verb, or of all."""
    if not name:
        return _all.format(verbs="\n".join(f"  {verb:<10} {lines[1]}" for verb, lines in VERBS.items()))
    usage, summary, *rest = VERBS[name]
    examples = [line for line in rest if line.startswith("icl ")]
    settings = [line for line in rest if line not in examples]
    common = ([] if name in QUICK else [_common.rstrip()]) + ["format=text|json        paths.outputs=DIR"]
    shown = ["", "examples:", *(f"  {example}" for example in examples)]
    return "\n".join([f"usage: icl {usage}", "", summary, "", *settings, *common, *shown])
