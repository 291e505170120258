"""The verbs, and what each is for."""

from __future__ import annotations

VERBS = {
    "train": "one training run; -m for a multirun",
    "check": "a theorem, measured: check=ahn/theorem1, check=ahn/all, check=all",
    "figure": "a paper's figure and its claims: figure=ahn/fig1 scale=laptop",
    "reproduce": "every check, every figure, then the report",
    "report": "outputs/report/index.html from what is done",
    "list": "every check, experiment and figure, and whether its result exists here",
    "bench": "speed, as ratios measured in one run: bench=train",
    "sweep": "how far a sweep is and what it has found: sweep=PATH",
    "clean": "shows sizes, then removes failed, stale and orphaned records",
    "completion": "prints shell completion: completion bash | zsh",
}
