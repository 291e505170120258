"""`icl VERB --help`: what can be set, with what, and examples."""

from __future__ import annotations

from collections.abc import Sequence

from omegaconf import OmegaConf

from icl.cli import VERBS
from icl.cli.hydra_app import compose, config_folders, options, parse_flags, use_config_dir
from icl.cli.outcome import OK

EXAMPLES = {
    "train": [
        "icl train experiment=ahn/theorem3 scale=smoke",
        "icl train experiment=ahn/theorem3 seeds=[0,1] optimizer.lr=0.01 train.steps=500",
        "icl train -m experiment=ahn/theorem3 model.layers=1,2 'seed=range(4)' hydra/launcher=joblib",
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
}


def show_help(verb: str, args: Sequence[str]) -> int:
    """With `check=...` or `experiment=...` beside --help, the settings are those of that choice."""
    flags = parse_flags(verb, [arg for arg in args if arg not in ("--help", "-h")])
    use_config_dir(flags.config_dir)
    cfg = compose(verb, flags.overrides)
    print(f"icl {verb}: {VERBS[verb]}\n\nexamples:")
    print("".join(f"  {example}\n" for example in EXAMPLES.get(verb, [])))
    print("choices (GROUP=OPTION; those of --config-dir count):")
    for group in _groups(verb):
        print(f"  {group}={' | '.join(sorted(set(options(group))))}")
    print("\nsettings (KEY=VALUE, dotted: train.steps=100), here as they stand:")
    OmegaConf.set_readonly(cfg, False)
    print("".join(f"  {line}\n" for line in OmegaConf.to_yaml(cfg).splitlines()))
    many = "" if verb in ("reproduce", "report") else "-m (every combination of a,b,c or range(n))   "
    print(f"flags: {many}--config-dir DIR   --cfg job   --info")
    return OK


def _groups(verb: str) -> list[str]:
    """The config groups `verb` has a choice in."""
    found = {path.name for folder in config_folders() for path in folder.iterdir() if path.is_dir()}
    shared = {"logger"}
    of_verb = {"train": found - {"check", "paths", "figure", "hydra", "paper"}, "check": {"check"} | shared}
    of_verb["figure"] = {"figure"} | shared
    return sorted(of_verb.get(verb, shared) & found)
