"""`icl VERB --help`: what can be set, with what, and examples."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from icl.cli.flags import parse_flags
from icl.cli.words import VERBS
from icl.config.compose import compose
from icl.config.places import Configs
from icl.jobs.outcome import OK

EXAMPLES = {
    "train": [
        "icl train experiment=ahn/theorem3 scale=smoke",
        "icl train experiment=ahn/theorem3 seeds=[0,1] optimizer.lr=0.01 train.steps=500",
        "icl train -m experiment=ahn/theorem3 model.layers=1,2 'seed=range(4)' hydra/launcher=vectorized",
        "icl train -m hydra/sweeper=search search.trials=20 'optimizer.lr=interval(0.01,0.1)' ...",
    ],
    "check": [
        "icl check check=all jobs=2",
        "icl check check=ahn/theorem1 check.dim=4 check.context=9 check.eigenvalues=[2,1,0.5,0.1]",
        "icl check check=ahn/theorem3 check.weights=outputs/runs/ahn/theorem3/FINGERPRINT",
        "icl check -m check=ahn/theorem1 check.dim=3,4,5",
    ],
    "figure": [
        "icl figure figure=ahn/fig1",
        "icl figure figure=ahn/all scale=smoke",
        "icl figure figure=ahn/fig3 figure.experiment.context=20",
    ],
    "reproduce": ["icl reproduce scale=smoke", "icl reproduce only=[ahn]"],
    "report": ["icl report", "icl report scale=smoke only=[ahn]"],
    "bench": ["icl bench bench=train"],
    "sweep": ["icl sweep sweep=outputs/sweeps/FINGERPRINT"],
}


def show_help(verb: str, args: Sequence[str]) -> int:
    """With `check=...` or `experiment=...` beside --help, the settings are those of that choice."""
    flags = parse_flags(verb, [arg for arg in args if arg not in ("--help", "-h")])
    configs = Configs.of(flags.config_dir)
    settings = compose(configs, verb, flags.overrides).settings
    print(f"icl {verb}: {VERBS[verb]}\n\nexamples:")
    print("".join(f"  {example}\n" for example in EXAMPLES.get(verb, [])))
    print("choices (GROUP=OPTION; those of --config-dir count):")
    for group in _groups(verb, configs):
        print(f"  {group}={' | '.join(configs.options(group))}")
    print("\nsettings (KEY=VALUE, dotted: train.steps=100), here as they stand:")
    text = yaml.safe_dump(settings, sort_keys=False, default_flow_style=None, width=110)
    print("".join(f"  {line}\n" for line in text.splitlines()))
    many = (
        "" if verb in ("reproduce", "report", "sweep") else "-m (every combination of a,b,c or range(n))   "
    )
    print(f"flags: {many}--config-dir DIR   --cfg job   --info")
    return OK


def _groups(verb: str, configs: Configs) -> list[str]:
    """The config groups `verb` has a choice in."""
    found = configs.groups
    shared = {"logger"}
    of_verb = {"train": found - {"check", "paths", "figure", "hydra", "paper"}, "check": {"check"} | shared}
    of_verb["figure"] = {"figure"} | shared
    return sorted(of_verb.get(verb, shared) & found)
