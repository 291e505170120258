"""`budget=NAME` of a figure: at scale=paper, fewer steps of training than the paper's, and nothing else less.

conf/figure/PAPER/FIG.yaml names them, `budgets: {evening: {steps: 800}}`, by the settings of its experiment.
A figure with a setting `decisive` is then not: what it finds confirms a claim or leaves it undecided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from icl.config.compose import Composed
from icl.errors import InputError, nearest, whole

KEY = "budgets"  # of a figure's config
_PARTS = ("experiment", "draw")


@dataclass(frozen=True)
class Budget:
    """A budget by its name, and what it replaces: `steps` by setting, `paper` those of scale=paper."""

    name: str
    steps: Mapping[str, int]
    paper: Mapping[str, int]

    @classmethod
    def chosen(cls, figure: str, composed: Composed) -> Budget | None:
        """Return the budget that a composed config asks for, None where it asks for none."""
        name = composed.settings.get("budget")
        if name is None:
            return None
        node, scale = composed.settings["figure"], composed.settings["scale"]
        known = node.get(KEY) or {}
        if not known:
            raise InputError(f"budget={name}: {figure} has none: its runs are those of its scale")
        if name not in known:
            raise InputError(f"budget={name}: {figure} has {', '.join(known)}{nearest(str(name), known)}")
        if scale != "paper":
            raise InputError(f"budget={name}: replaces the paper's steps; scale={scale} has its own")
        own = node["experiment"]
        for key, steps in known[name].items():
            place = f"figure.{KEY}.{name}.{key}"
            if not key.endswith("steps") or key not in own:
                raise InputError(f"{place}: is no number of steps in figure.experiment")
            whole(place, steps, 1)
            if any(typed.lstrip("+").startswith(f"figure.experiment.{key}=") for typed in composed.overrides):
                raise InputError(f"figure.experiment.{key}: is given by budget={name}; leave out one of them")
        return cls(str(name), dict(known[name]), {key: own[key] for key in known[name]})

    def of(self, figure: Mapping[str, Any]) -> Budget:
        """Return the budget of this name that a figure's config has, itself if it has none."""
        return replace(self, steps=(figure.get(KEY) or {}).get(self.name, self.steps))

    def put(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return a figure's settings at this budget."""
        found = {part: dict(settings[part]) for part in _PARTS}
        found["experiment"] |= self.steps
        for part in found.values():
            if "decisive" in part:
                part["decisive"] = False
        return found

    @property
    def text(self) -> str:
        """Return what it replaces, a sentence."""
        pairs = [f"{key}={self.steps[key]:,} instead of {self.paper[key]:,}" for key in self.steps]
        return f"Trained with budget={self.name}: {', '.join(pairs)}."
