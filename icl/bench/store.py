"""A folder of thousands of finished runs: what each command that looks at all of them takes.

One run is trained. The others are its numbers again, stored by the store itself under the settings, seeds and
fingerprints of the jobs of a sweep, which has to know all of them as done.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from icl.bench.command import Ran, run_icl
from icl.config import allowed_packages
from icl.config.compose import Composed, compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.jobs.requests import train
from icl.runs.record import RunRecord
from icl.runs.store import RunStore

RUNS, FEW = 10_000, 100
RATES = (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05)
TRAINED = ("experiment=ahn/theorem3", "scale=smoke")
SECONDS = {"list": 1.0, "report": 20.0, "train": 60.0, "sweep": 60.0, "clean": 20.0, "runs": 2.0}
MORE_KB = 15.0  # of memory, for each run more


def run(repeats: int) -> Iterator[dict[str, Any]]:
    """Once, however many repeats: to make the folder takes minutes."""
    yield from measured(RUNS, FEW)


def measured(runs: int, few: int) -> Iterator[dict[str, Any]]:
    """Measure every command on a folder of many runs, and its memory against one of `few`."""
    with tempfile.TemporaryDirectory() as folder:
        least = {verb: ran.peak_mb for verb, _, ran in _looked_at(Path(folder, "few"), few)}
        for verb, name, ran in _looked_at(Path(folder, "all"), runs):
            yield ran.row(name, SECONDS[verb], least[verb] + MORE_KB * (runs - few) / 1024)


def _looked_at(outputs: Path, runs: int) -> Iterator[tuple[str, str, Ran]]:
    swept = fill(outputs, runs)
    where = f"paths.outputs={outputs}"
    done = run_icl("train", "-m", *swept, where)
    if done.code != 0 or done.document["cached"] != runs:
        raise RuntimeError(f"{outputs}: of {runs} jobs {done.document.get('cached')} are known to be done")
    yield "train", f"a sweep of {runs} jobs that are done", done
    yield "sweep", f"icl sweep of {runs} jobs", run_icl("sweep", f"sweep={done.document['sweep']}", where)
    yield "runs", f"first icl runs beside {runs} runs", run_icl("runs", where)
    for verb in ("runs", "list", "report", "clean"):
        yield verb, f"icl {verb} beside {runs} runs", run_icl(verb, where)


def fill(outputs: Path, runs: int) -> list[str]:
    """Write finished runs; return the overrides of the sweep whose jobs they are."""
    with allowed_packages.frozen_allowlist(allowed_packages.allowed()):
        return _filled(outputs, runs)


def _filled(outputs: Path, runs: int) -> list[str]:
    configs, session = ConfigDirs(), Session(outputs)
    composed = compose(configs, "train", [*TRAINED, "logger=none", f"paths.outputs={outputs}"])
    trained = train.parse(_with(composed, 0, RATES[0]), session).run(session)
    rates, seeds = RATES[:runs], -(-runs // len(RATES))
    if seeds * len(rates) != runs:
        raise ValueError(f"runs={runs}: must be a multiple of {len(RATES)}, or fewer")
    for rate in rates:
        for seed in range(seeds):
            _store(train.parse(_with(composed, seed, rate), session), trained, outputs)
    values = ",".join(map(str, rates))
    return [*TRAINED, f"optimizer.lr={values}", f"seed=range({seeds})", "hydra/launcher=vectorized"]


def _with(composed: Composed, seed: int, rate: float) -> Composed:
    settings = copy.deepcopy(composed.settings)
    settings["seed"], settings["optimizer"]["lr"] = seed, rate
    return Composed(settings, composed.choices)


def _store(request: train.TrainRequest, trained: RunRecord, outputs: Path) -> None:
    (seed,) = request.seeds
    about = (request.id, request.identity, request.config.stored, request.digest, request.roots)
    with RunStore(outputs).begin(*about) as run:
        if run.cached is not None:  # the one that was trained
            return
        columns = {**trained.metrics, "seed": [seed] * len(trained.metrics["step"])}
        run.finish(
            metrics=[dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
            columns=list(columns),
            weights={**trained.weights, "seeds": np.array([seed])},
            summary={
                name: {"mean": entry["mean"], "by_seed": {str(seed): entry["mean"]}}
                for name, entry in trained.run["metrics"].items()
            },
            steps=trained.run["steps"],
            seeds=[seed],
            verdicts=trained.verdicts,
            extras={name: trained.run[name] for name in ("threads", "device", "notes", "diverged")}
            | {"group": request.group},
        )
