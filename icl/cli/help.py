"""`icl VERB --help`: what can be set, with what, what each is for, and examples."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from icl.cli.flags import parse_flags
from icl.cli.verbs import VERBS
from icl.config import comments
from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.config.values import flatten, literal
from icl.jobs.exit_codes import OK
from icl.jobs.stored.catalog import claim_of

EXAMPLES = {
    "train": [
        "icl train experiment=ahn/theorem3 scale=smoke",
        "icl train experiment=ahn/theorem3 'seeds=[0,1]' optimizer.lr=0.01 train.steps=500",
        "icl train -m experiment=ahn/theorem3 model.layers=1,2 'seed=range(4)' hydra/launcher=vectorized",
        "icl train -m experiment=ahn/theorem3 hydra/sweeper=search 'optimizer.lr=interval(0.01,0.1)'",
    ],
    "check": [
        "icl check check=all",
        "icl check check=ahn/theorem1 check.dim=4 'check.eigenvalues=[2,1,0.5,0.1]'",
        "icl check check=ahn/theorem3 check.weights=outputs/runs/ahn/theorem3/FINGERPRINT",
        "icl check -m check=ahn/theorem1 check.dim=3,4,5",
    ],
    "figure": [
        "icl figure figure=ahn/fig1",
        "icl figure figure=ahn/all scale=smoke",
        "icl figure figure=ahn/fig1 figure.experiment.layers=2",
        "icl figure figure=ahn/fig1 figure.style=my.mplstyle figure.width=3.3 'figure.formats=[pdf]'",
    ],
    "reproduce": ["icl reproduce scale=smoke", "icl reproduce 'only=[ahn]'"],
    "report": ["icl report", "icl report scale=smoke 'only=[ahn]'"],
    "bench": ["icl bench bench=train"],
    "sweep": ["icl sweep sweep=outputs/sweeps/FINGERPRINT"],
}
_WIDE, _SHORT = 110, 12
_CHOSEN = {"check": "check", "figure": "figure", "train": "experiment"}
_IGNORED = {  # keys of every verb that one of them takes and does not use
    "report": ("force", "logger"), "bench": ("force", "logger"), "sweep": ("force", "logger", "scale"),
}  # fmt: skip
_OF_CHECKS = {  # where a check's own config says no more
    "dim": "dimension of the covariates", "context": "examples in a prompt", "layers": "number of layers",
    "seed": "of all random numbers", "samples": "prompts that are sampled", "restarts": "starts of a search",
    "starts": "starts of a search", "length": "of a sequence", "window": "s: tokens have s + 1 entries",
}  # fmt: skip


def show_help(verb: str, args: Sequence[str]) -> int:
    """Show the help of a verb; with a check, figure or experiment the settings of that choice."""
    flags = parse_flags(verb, [arg for arg in args if arg not in ("--help", "-h")])
    configs = ConfigDirs.of(flags.config_dir)
    composed = compose(configs, verb, flags.overrides)
    width = min(shutil.get_terminal_size().columns, _WIDE)
    settings = dict(composed.settings)
    if not any(override.lstrip("+").startswith("logger") for override in flags.overrides):
        settings.pop("logger", None)
    print("\n".join(_lines(verb, configs, settings, composed.choices, width)))
    return OK


def _lines(
    verb: str, configs: ConfigDirs, settings: Mapping[str, Any], choices: Mapping[str, str | None], width: int
) -> Iterator[str]:
    yield f"icl {verb}: {VERBS[verb].summary}"
    chosen = choices.get(_CHOSEN.get(verb, ""))
    if chosen:
        yield from _title(verb, chosen, configs, settings, width)
    yield "\nexamples:"
    yield from (f"  {example}" for example in EXAMPLES.get(verb, []))
    if not chosen and _groups(verb, configs):
        yield "\nchoices (GROUP=OPTION; * is the default; options of --config-dir included):"
        for group in _groups(verb, configs):
            yield f"  {group}="
            options = {
                option: comments.of_option(configs, group, option) for option in configs.options(group)
            }
            marked = {
                f"{'*' if choices.get(group) == o else ' '} {o}": comments_of
                for o, comments_of in options.items()
            }
            yield from _columns(marked, width, "    ")
    yield f"\nsettings (KEY=VALUE), with their values at scale={settings.get('scale', 'laptop')}:"
    comments_of = comments.of_keys(configs, verb, choices)
    comments_of = {f"check.{name}": text for name, text in _OF_CHECKS.items()} | comments_of
    shown = {key: value for key, value in settings.items() if key not in _IGNORED.get(verb, ())}
    for section, rows in _sections(shown, comments_of).items():
        yield from [f"  {section}"] if section else []
        yield from _columns(rows, width, "    " if section else "  ")
    if "logger" not in settings and "logger" in _groups(verb, configs):
        yield f"  logger.*: icl {verb} logger=wandb_offline --help lists them"
    many = [] if verb in ("reproduce", "report", "sweep") else ["-m (every combination of a,b,c or range(n))"]
    yield "\nflags: " + "   ".join([*many, "--config-dir DIR", "--cfg job", "--info"])


def _title(
    verb: str, chosen: str, configs: ConfigDirs, settings: Mapping[str, Any], width: int
) -> Iterator[str]:
    yield f"\n{chosen}: {comments.of_option(configs, _CHOSEN[verb], chosen)}"
    node = settings.get(verb)
    claim = claim_of(str(node.get("_target_", ""))) if isinstance(node, Mapping) else ""
    yield from textwrap.wrap(claim, width, initial_indent="  ", subsequent_indent="  ")


def _sections(settings: Mapping[str, Any], comments_of: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return `key=value` and its comment by section: one for each group of settings, first the others."""
    found: dict[str, dict[str, str]] = {"": {}}
    for key, value in settings.items():
        nested = isinstance(value, Mapping)
        rows = found.setdefault(key, {}) if nested else found[""]
        for dotted, leaf in (flatten(value, key) or {key: value}).items():
            if not dotted.endswith("_target_"):
                rows[f"{dotted}={_typed(leaf)}"] = comments_of.get(dotted, "")
    return {section: rows for section, rows in found.items() if rows}


def _typed(value: Any) -> str:
    return "null" if value is None else literal(value) if not isinstance(value, str) else value


def _columns(rows: Mapping[str, str], width: int, margin: str) -> Iterator[str]:
    """Yield rows of two columns, the second below the first where the first is long."""
    usual = [len(left) for left in rows if len(left) <= width // 3]
    first = max(usual, default=_SHORT) + 2
    for left, right in rows.items():
        lines = textwrap.wrap(right, max(width - len(margin) - first, 20)) or [""]
        if len(left) + 2 > first and right:
            yield f"{margin}{left}"
            left = ""
        yield f"{margin}{left:<{first}}{lines[0]}".rstrip()
        yield from (f"{margin}{'':<{first}}{line}" for line in lines[1:])


def _groups(verb: str, configs: ConfigDirs) -> list[str]:
    """Return the config groups in which `verb` has a choice."""
    found = configs.groups
    of_verb = {"train": found - {"check", "paths", "figure", "hydra", "paper"}, "reproduce": {"logger"}}
    of_verb |= {"check": {"check", "logger"}, "figure": {"figure", "logger"}}
    return sorted(of_verb.get(verb, set()) & found)
