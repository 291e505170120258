"""Records that figures are drawn from: those stored at the papers' sizes, and others computed or made up
small."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from icl.config.objects import instantiate
from icl.figures.ahn import losses
from icl.figures.arrays import unpack
from icl.figures.figure import Figure, Records
from icl.figures.look import KEYS
from icl.jobs.requests.figure import FigureRequest
from icl.runs.json_records import read
from tests.conformance.configs import Config
from tests.records import FakeRunner, mark, record

PAPER = Path(__file__).parents[2] / "docs/records/paper/figures"
STORED = sorted(path.parents[1].relative_to(PAPER).as_posix() for path in PAPER.glob("*/*/paper/figure.json"))

PLACES = {"depth": (2, 3, 4), "giannou": (10,), "looped": (1, 2, 4, 5), "lu": (1, 2, 4)}
COMPUTED = [f"{paper}/fig{n}" for paper, numbers in PLACES.items() for n in numbers]
LEFT = (*KEYS, "caption")  # of a figure's config: how it looks
CONTEXTS, COMPONENTS = 400, 2
SCALES = {"trained": 0.25, "plain": 0.5, "pgd_steps": 1.0, "pgd_one": 2.0, "gd_steps": 4.0, "gd_one": 5.0}
EXACT = {"pgd_one": 2.0, "pgd_optimum": 1.0, "pgd_published": 3.0, "pgd_fewer": 2.5}


@functools.cache
def base(id: str) -> tuple[Figure, Records]:
    """Return a figure and its records."""
    return SMALL[id]() if id in SMALL else (stored(id)[0].figure, stored(id)[1])


@functools.cache
def stored(id: str) -> tuple[FigureRequest, Records, list[dict[str, Any]]]:
    """Return what is stored at the paper's size: the request, its records and its claims."""
    folder = PAPER / id / "paper"
    kept = read(folder / "figure.json")  # None where its seal is broken: then icl figure from= has nothing
    assert kept is not None, f"{id}: icl figure from=docs/records/paper refuses it"
    document = kept["document"]
    found = unpack(document["drawn_from"], folder / "arrays.npz")
    request = FigureRequest(id, "paper", document["settings"], remark=document["remark"])
    return request, found, document["claims"]


def changed(id: str, name: str, change: Callable[[Any], Any], **settings: Any) -> tuple[Figure, Records]:
    """Return the figure with other settings, and with other arrays in one record: `metrics/` is before the
    name of a metric, and what becomes None is left out."""
    figure, records = base(id)
    figure = copy.copy(figure)
    vars(figure).update(settings)
    given = vars(records[name])
    metrics = {f"metrics/{key}": np.array(y, dtype=float) for key, y in given.get("metrics", {}).items()}
    parts = {**given.get("weights", {}), **metrics}
    parts = {key: y for key, y in {**parts, **change(parts)}.items() if y is not None}
    metrics = {key[len("metrics/") :]: parts.pop(key).tolist() for key in metrics}
    return figure, {**records, name: record(**{**given, "weights": parts, "metrics": metrics})}


def made_up(figure: Any, values: Any) -> tuple[Figure, Records]:
    """Return two replicas for each value; each loss a scale times the same context's own size, with the mean
    of the trained one as the best."""
    rng = np.random.default_rng(0)
    x_R = np.repeat(values, 2)
    size_RC = rng.lognormal(0, 0.5, (len(x_R), CONTEXTS))
    loss_RC = {name: scale * size_RC * rng.lognormal(0, 0.1, size_RC.shape) for name, scale in SCALES.items()}
    loss_RC["plain"][-1, 8] = 1e9  # one context carries it all
    loss_RC |= {"ols": np.maximum(5.0 - x_R, 0)[:, None] + 0 * size_RC}
    loss_RC["ols_raw"] = 1.1 * loss_RC["ols"]
    if figure.varied == "layers":  # where trained weights can only equal PGD
        loss_RC["trained"][x_R == 1] = loss_RC["pgd_steps"][x_R == 1]
    arrays = losses.summary(loss_RC, np.ones_like(size_RC), [COMPONENTS] * len(x_R))
    arrays |= {f"exact_{name}": np.full(len(x_R), value) for name, value in EXACT.items()}
    best_R, pgd_R = (loss_RC[name].mean(1) for name in ("trained", "pgd_steps"))
    arrays |= {"exact_ab_best": best_R, "exact_pgd_steps": pgd_R, figure.varied: x_R, "seeds": 0 * x_R}
    return figure, {"losses": record(weights=arrays)}


def isotropic() -> tuple[Figure, Records]:
    """Return Figure 1 of depth with runs that ended at a risk of .4 if shared, else of .36."""

    def ended(experiment: str, given: dict[str, Any]) -> Any:
        end = 0.4 if given["model.shared"] else 0.36
        losses = {"step": [0, 1, 2], "seed": [0, 0, 0], "loss": [1.0, end + 0.001, end - 0.001]}
        return record(run=mark("f", [0]), metrics=losses)

    figure = built("depth/fig1")
    return figure, figure.runs(FakeRunner(ended))


def trained_loops() -> Records:
    """Return records of a training that ended at the best matrix."""
    metrics = {
        "step": [0, 1], "seed": [0, 0], "loss": [2.0, 0.02], "exact_risk": [2.0, 0.0111],
        "spectrum_real": [0.01, 0.78], "spectrum_imag": [0.0, 0.33],
    }  # fmt: skip
    arrays = {
        "scalar_a": 0.75, "scalar_risk": 0.0148, "best_a": 0.78, "best_b": 0.33, "best_risk": 0.011,
        "real_RD": [[0.78, 0.78]], "imag_RD": [[0.33, -0.33]], "trained_risk_R": [0.0111],
        "random_risk_T": [2.0, 0.01101], "scalar_risk_T": [2.0, 0.0148],
    }  # fmt: skip
    weights = {name: np.array(values) for name, values in arrays.items()}
    run = record(metrics=metrics, run={"seeds": [0]}, weights={})
    return {"run": run, "exact": record(weights=weights)}


def ninth() -> tuple[Figure, Records]:
    """Return Figure 9 as if all stacks were far below order 2, beside the baselines of Figure 8."""
    eighth, records = base("giannou/fig8")
    figure, found = built("giannou/fig9", layers=[1, 2, 3]), {}
    figure.laws = eighth.laws
    for law in figure.laws:
        known, means = records[f"baselines_{law.name}"], {}
        for n in figure.layers:
            name, half = f"{law.name}_layernorm_L{n}", known.weights["newton_transpose_2_mean"][n] / 2
            means |= {f"{name}_mean": half * np.array([0.98, 1.0, 1.02]), f"{name}_tail": np.zeros(3)}
            means |= {f"{name}_error": np.full(3, 1e-3 * half)}
        found |= {f"losses_{law.name}": record(weights=means), f"baselines_{law.name}": known}
    return figure, found


def second() -> tuple[Figure, Records]:
    """Return Figure 2 with two layers that were trained to their end, and three that go below the floor."""
    name, spread = "kappa1_unmasked_started_L3", np.array([0.98, 0.99, 1.0, 1.01, 1.02])
    request, records, _ = stored("giannou/fig2")
    known = records["baselines"].weights
    best, floor = (known[f"family_unmasked_{of}"].min() for of in ("risk_L", "floor"))
    means = {f"{name}_mean": 0.9 * floor * spread, "kappa1_unmasked_L2_mean": best * spread}
    arrays = {**means, f"{name}_error": 1e-9 * spread, f"{name}_tail": 0 * spread}
    losses = record(weights={**records["losses"].weights, **arrays})
    return request.figure, {**records, "losses": losses}


def computed(id: str) -> tuple[Figure, Records]:
    """Return the figure at scale=smoke and what it computes."""
    figure = built(id)
    return figure, figure.runs(FakeRunner())


def built(id: str, scale: str = "smoke", **settings: Any) -> Any:
    """Return the figure of a scale, with other settings."""
    node = {key: value for key, value in Config("figure", id).composed(scale).items() if key not in LEFT}
    return instantiate("figure", {**node, **settings})


def rounded(value: Any) -> Any:
    """Return a document with nine digits of every number."""
    return json.loads(json.dumps(value), parse_float=lambda text: float(f"{float(text):.9g}"))


SMALL: dict[str, Callable[[], tuple[Figure, Records]]] = {
    "ahn/fig6": lambda: made_up(built("ahn/fig6", context=[2, 8]), [2, 8]),
    "ahn/fig7": lambda: made_up(built("ahn/fig7", layers=[1, 2, 3]), [1, 2, 3]),
    "depth/fig1": isotropic,
    "giannou/fig2": second,
    "giannou/fig9": ninth,
    "looped/fig3": lambda: (built("looped/fig3"), trained_loops()),
    **{id: functools.partial(computed, id) for id in COMPUTED},
}
