"""`icl ARGS` inside this process, for the fixtures `icl` and `tiny`: as fast as the command allows."""

import csv
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from icl import random
from icl.runs import code
from tests.documents import read
from tests.loggers.wandb_file import Damaged, records

TINY = [
    "experiment=ahn/theorem3", "scale=smoke", "checks=[]", "train.steps=4", "train.batch=8",
    "train.steps_per_batch=2", "train.log_every=2", "callbacks.gradient.count=0",
]  # fmt: skip
DIVERGES = ["optimizer=sgd", "~optimizer.betas", "train.clip=null", "train.steps=20",
            "optimizer.lr=1e20,0.01"]  # fmt: skip


def without_repeated(words: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return all words, of an override that is repeated the last."""
    keys = {word.partition("=")[0] for word in more if "=" in word}
    return [*(word for word in words if "=" not in word or word.partition("=")[0] not in keys), *more]


def tiny_argv(*more: str) -> list[str]:
    """Return the arguments of a `train` of a few steps, with more overrides."""
    return ["train", *without_repeated(TINY, more)]


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write texts by their paths in a folder, and return the folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def contents(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str
    argv: tuple[str, ...] = ()

    @property
    def json(self) -> Any:
        """Return the one document on stdout, which is of the command's schema."""
        assert self.out, self.err
        return read(self.argv, self.out)


Run = Callable[..., Result]


def assert_refused(result: Result, said: str, outputs: Path | None = None) -> None:
    """Assert exit code 2 and one line on stderr, with a suggestion a second one, that contain `said`; and
    that nothing is written."""
    problem, *more = result.err.splitlines()
    assert (result.code, result.out) == (2, "") and problem.startswith("icl: "), result
    assert len(more) <= 1 and all(line.startswith("icl: did you mean ") for line in more), result
    assert said in result.err, result.err
    assert outputs is None or not outputs.exists()


def table_of(sweep: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of a sweep's CSV."""
    with Path(sweep["sweep_csv"]).open() as rows:
        return list(csv.DictReader(rows))


@contextmanager
def other_code() -> Iterator[None]:
    """Stand in for another version of the code: every digest differs, and every number that is drawn."""
    digest, roles = code._digest, random.ROLES
    with (
        mock.patch.object(code, "_digest", lambda roots: f"other{digest(roots)[5:]}"),
        mock.patch.object(random, "ROLES", roles[::-1]),
    ):
        yield


def logged_to_wandb(outputs: Path) -> list[tuple[Any, int]]:
    """Return each run that was logged to W&B offline, and its exit code, once W&B has written it."""
    found = []
    for log in sorted(outputs.glob("wandb/offline-run-*/run-*.wandb")):
        codes: list[int] = []
        while not codes:
            with suppress(Damaged):
                told = list(records(log))
                codes = [record.exit.exit_code for record in told if record.HasField("exit")]
            time.sleep(0.02)
        (run,) = (record.run for record in told if record.HasField("run"))
        found.append((run, *codes))
    return found
