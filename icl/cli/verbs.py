"""The verbs: what each is for, and the function that runs it, which is imported when it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Verb(NamedTuple):
    summary: str
    command: str = "icl.cli.dispatch:command"  # takes the verb and its arguments
    is_quick: bool = False  # without Hydra; it has a help of its own

    def load(self) -> Callable[[str, Sequence[str]], int]:
        from importlib import import_module

        module, _, name = self.command.partition(":")
        found: Callable[[str, Sequence[str]], int] = getattr(import_module(module), name)
        return found


VERBS = {
    "train": Verb("one training run; -m for a multirun"),
    "check": Verb("a theorem, measured: check=ahn/theorem1, check=ahn/all, check=all"),
    "figure": Verb("a paper's figure and its claims: figure=ahn/fig1 scale=laptop"),
    "reproduce": Verb("every check, every figure, then the report"),
    "report": Verb("outputs/report/index.html from what is done"),
    "list": Verb(
        "every check, experiment and figure, and whether its result exists here",
        "icl.cli.listing:list_command",
        is_quick=True,
    ),
    "bench": Verb("speed, as ratios measured in one run: bench=train"),
    "sweep": Verb("how far a sweep is and what it has found: sweep=PATH"),
    "runs": Verb(
        "lists runs, what differs between them, and their risk; compares two: runs compare A B",
        "icl.cli.runs:runs_command",
        is_quick=True,
    ),
    "clean": Verb(
        "shows sizes, then removes failed, stale and orphaned records, or one run: clean run=A",
        "icl.cli.clean:clean_command",
        is_quick=True,
    ),
    "completion": Verb(
        "prints shell completion: completion bash | zsh",
        "icl.cli.completion:completion_command",
        is_quick=True,
    ),
}
