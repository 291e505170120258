"""Reproduces, checks and extends the theory of in-context learning in linear transformers.

    icl.check("ahn/theorem1", dim=7)                                    a verdict
    icl.train("ahn/theorem3", seeds=[0, 1], **{"optimizer.lr": 0.02})   a training run, all its seeds at once
    icl.figure("ahn/fig1", scale="smoke")                               a figure and its claims
    icl.reproduce(only=["ahn"])                                         every check, every figure, the report
    icl.list_runs(**{"optimizer.lr": 0.02})                             the runs there are, the newest first
    icl.load_run(path)                                                  a finished run: model, law, metrics
    icl.exact_risk(P, Q, context=20)                                    the risk of given weights, not sampled

What these return is what the command prints with format=json; in a notebook it shows itself. Errors are
exceptions (`icl.errors`). Importing is cheap; torch and Hydra are loaded by the first call that needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icl.resolver import by_scale as _by_scale  # noqa: F401  its import has OmegaConf know ${by_scale:...}

__version__ = "0.1.0"
__all__ = [
    "__version__", "check", "exact_risk", "figure", "list_runs", "load_run", "reproduce", "train",
]  # fmt: skip

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import ArrayLike

    from icl.events import Listener
    from icl.jobs.stored.run_list import ListedRun
    from icl.notebook import FigureDict, ResultDict
    from icl.training.load import TrainedRun

    Folder = str | PathLike[str]


def check(
    name: str,
    *,
    outputs: Folder | None = None,
    config_dir: Folder | None = None,
    on_event: Listener | None = None,
    **settings: Any,
) -> ResultDict:
    """`icl check NAME check.KEY=VALUE ...` as a dict: the verdict and all that it rests on.

    Nothing is written unless `outputs` names a folder to keep the record in. Besides the check's own settings
    there are `scale`, `force` and `logger`, as for every verb; `config_dir` is a folder of your own configs,
    `on_event` a listener (icl.events).
    """
    from icl.api import run

    return run("check", name, settings, outputs, config_dir, on_event)


def train(
    experiment: str,
    *,
    outputs: Folder = "outputs",
    config_dir: Folder | None = None,
    on_event: Listener | None = None,
    **settings: Any,
) -> ResultDict:
    """`icl train EXPERIMENT KEY=VALUE ...` as a dict: where the run is, its metrics, its verdicts.

    Dotted settings come in a dict: `icl.train("ahn/theorem3", **{"model.layers": 2})`. A finished run is
    found and not repeated; `icl.load_run(found["run_dir"])` reads it.
    """
    from icl.api import run

    return run("train", experiment, settings, outputs, config_dir, on_event)


def figure(
    name: str,
    *,
    outputs: Folder = "outputs",
    config_dir: Folder | None = None,
    on_event: Listener | None = None,
    **settings: Any,
) -> FigureDict:
    """`icl figure NAME figure.KEY=VALUE ...` as a dict: files, and claims with their verdicts.

    `.figure` of it is a matplotlib Figure: `icl.figure("ahn/fig1", width=3.3, layers=2).figure`.
    """
    from icl.api import run

    return run("figure", name, settings, outputs, config_dir, on_event)  # type: ignore[return-value]


def reproduce(
    *,
    outputs: Folder = "outputs",
    config_dir: Folder | None = None,
    on_event: Listener | None = None,
    **settings: Any,
) -> ResultDict:
    """`icl reproduce only=[...] scale=...` as a dict: all checks, all figures, and where the report is."""
    from icl.api import run_all

    return run_all(settings, outputs, config_dir, on_event)


def list_runs(outputs: Folder = "outputs", **settings: Any) -> list[ListedRun]:
    """`icl runs KEY=VALUE ...` as a list, the newest first. Each has `.path`, `.name`, `.status`, `.metrics`,
    `.config`, and `.load()`, which is load_run; `.document()` is a row for pandas.DataFrame."""
    from icl.jobs.stored.run_list import list_runs

    return list_runs(outputs, settings)  # type: ignore[arg-type]


def load_run(path: Folder) -> TrainedRun:
    """Return the finished run in folder `path`: `.model(x, y, x_query)` predicts, `.law` draws prompts;
    `.A` of shape (seeds, layers, d, d), `.B`, `.Sigma`, `.weights`, `.metrics`, `.config`, `.to_pandas()`,
    and `.curve("loss")`: the steps, and values of shape (seeds, steps)."""
    from icl.training.load import load_run as load

    return load(path)  # type: ignore[arg-type]


def exact_risk(P: ArrayLike, Q: ArrayLike, **task: Any) -> float:
    """Risk of linear attention with P and Q, (p, p) of one layer or (L, p, p) of a stack, without sampling
    error; `task` sets the law as `icl train task.KEY=VALUE` does (context, eigenvalues, covariance, ...).

    Raises icl.errors.InputError where no exact form exists.
    """
    from icl.models.exact_risk import exact_risk as risk

    return risk(P, Q, **task)
