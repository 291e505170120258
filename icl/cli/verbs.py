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
    "train": Verb("trains one run, all its seeds at once; -m for a multirun"),
    "check": Verb("tests a theorem numerically: check=ahn/theorem1, check=ahn/all, check=all"),
    "figure": Verb("plots a paper's figure and tests its claims: figure=ahn/fig1"),
    "reproduce": Verb("runs every check and every figure, then writes the report"),
    "report": Verb("writes outputs/report/index.html from stored results"),
    "list": Verb(
        "lists every check, experiment and figure, and which results exist here",
        "icl.cli.listing:list_command",
        is_quick=True,
    ),
    "bench": Verb("measures speed, as ratios within one run: bench=train"),
    "sweep": Verb("shows the progress and the results of a sweep: sweep=PATH"),
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
    "archive": Verb(
        "writes finished records as one folder with digests: archive FOLDER",
        "icl.cli.archive:archive_command",
        is_quick=True,
    ),
    "verify": Verb(
        "compares an archive with its digests and with today's numbers: verify ARCHIVE",
        "icl.cli.archive:verify_command",
        is_quick=True,
    ),
    "publish": Verb(
        "writes stored results as a static site, a page for each claim: publish FOLDER",
        "icl.cli.archive:publish_command",
        is_quick=True,
    ),
    "completion": Verb(
        "prints shell completion: completion bash | zsh",
        "icl.cli.completion:completion_command",
        is_quick=True,
    ),
}
