"""Trained weights and the algorithms they are compared with, on the same contexts (ahn, Figures 6 and 7).

The loss of a context is the squared error given the context, averaged over the task and the query. Every
predictor here is linear in the task and in the query, so that average is a sum over finitely many prompts:
each column of Sigma_w's root as the task, with each column of Sigma's root as the query.
The mean over contexts is carried by rare ones once there are three layers with B, so the test contexts are a
weighted draw that shows them (icl.tasks.tilted).
R replicas, C contexts, D covariates, L steps, P = D + 1 token width.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from icl.algorithms import Contexts, GradientDescent, LeastSquares, search_gd
from icl.errors import InputError, reals, whole
from icl.experiments.ahn.trained import MOST_BATCHES, identity, sampled_risk
from icl.experiments.runner import Runner
from icl.models import LinearTransformer
from icl.models.batched import batch_last
from icl.random import generator
from icl.ranges import MOST_PROMPTS
from icl.runs.record import RunRecord
from icl.tasks.integrated import Tilted
from icl.tasks.linear_regression import LinearRegressionLaw, linear_regression
from icl.tasks.prompts import GramPrompt
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.training.estimators import make_estimator
from icl.training.load import restored

CHUNK = 200  # contexts at a time: their prompts are D * D as many
STARTS = 64  # of the search for the best point of eq. (11) on S: at N = 2 and 8, 32 miss it
# The authors' notebooks: w <- w - eta sum_i (<w, x_i> - y_i) x_i over the first N - 1 of the N examples.
PUBLISHED_ETAS = (0.001, 0.002, 0.004, 0.008, 0.01, 0.02, 0.04, 0.08, 0.16)


class PairedPredictor(Protocol):
    def predict(self, prompt: GramPrompt) -> Tensor: ...


@dataclass(frozen=True)
class Sizes:
    """Numbers of contexts per replica: to compare on, and an independent draw to choose step sizes on; and of
    weighted draws for the risk of the trained stack, where it is measured by itself."""

    test: int
    search: int
    draws: int = 0

    def __post_init__(self) -> None:
        whole("figure.experiment.test_contexts", self.test, 1, MOST_PROMPTS)
        whole("figure.experiment.search_contexts", self.search, 1, MOST_PROMPTS)
        whole("figure.experiment.draws", self.draws, 0, MOST_BATCHES)


def compare(
    runner: Runner,
    name: str,
    trained: Sequence[RunRecord],
    plain: RunRecord,
    sizes: Sizes,
    *,
    least_squares: bool = False,
) -> RunRecord:
    """Losses of trained weights and of every baseline, as arrays (R, C), with the exact values theory has.

    `trained` have seen the risk's tail, from different starts on the same prompts: of each seed the one of
    the least training loss counts. `plain`, of the same seeds, has seen batches as the paper draws them."""
    science = {
        "of": [*map(identity, trained), identity(plain)],
        "seeds": plain.run["seeds"],
        "least_squares": least_squares,
        **{name: size for name, size in dataclasses.asdict(sizes).items() if size},
    }
    return runner.store(name, science, lambda: comparison(trained, plain, sizes, least_squares=least_squares))


def initial_sizes(init_stds: Sequence[float]) -> list[float]:
    """Check the standard deviations of the initializations that are tried."""
    key = "figure.experiment.init_stds"
    found = reals(key, init_stds, None, 0, open_low=True)
    if len(set(found)) < len(found):
        raise InputError(f"{key}={list(init_stds)}: must be different numbers")
    return found


def train_starts(runner: Runner, overrides: Mapping[str, Any], init_stds: Sequence[float]) -> list[RunRecord]:
    """Train ahn/tail from initializations of several sizes, each on the same prompts."""
    return [runner.train("ahn/tail", {**overrides, "model.init_std": std}) for std in init_stds]


def best_start(trained: Sequence[RunRecord]) -> Mapping[str, np.ndarray]:
    """Return of each seed the matrices of the run with the least loss at the end; NaN counts last."""
    matrices = [restored(run).matrices for run in trained]
    if len(trained) == 1:
        return matrices[0]
    ends = [run.run["metrics"]["loss"]["by_seed"] for run in trained]
    seeds = [str(seed) for seed in trained[0].run["seeds"]]
    loss_KR = np.array([[end[seed] for seed in seeds] for end in ends], dtype=float)
    best_R = np.where(np.isnan(loss_KR), np.inf, loss_KR).argmin(0)
    return {name: np.stack([matrices[k][name][r] for r, k in enumerate(best_R)]) for name in matrices[0]}


def comparison(
    trained: Sequence[RunRecord], plain: RunRecord, sizes: Sizes, *, least_squares: bool = False
) -> dict[str, np.ndarray]:
    """`loss_NAME` (R, C) for every predictor on the same contexts and their `weight` (R, C), neighbours of
    different `components` (R,), the first of which draws plain contexts; `eta_NAME` (R, L) as searched;
    `exact_NAME` (R,); the trained stack's `risk_R` and `risk_stderr_R` by `draws` larger weighted draws."""
    run = restored(trained[0])
    seeds, model = run.run["seeds"], run.with_weights(best_start(trained))
    law = linear_regression(run.law, "a comparison with descent")
    layers = model.parametrization.layers
    etas_RL = search_steps(law, contexts(law, seeds, "search", sizes.search), layers)
    tilted = make_estimator("tilted", model, law)
    assert isinstance(tilted, Tilted)
    streams = [generator(seed, "eval") for seed in seeds]
    S_RCDD, weight_RC = law.tilted_grams(streams, sizes.test, tilted.inflations_R)
    predictors: dict[str, PairedPredictor] = {"trained": model, "plain": restored(plain).transformer}
    for name, eta_RL in etas_RL.items():
        predictors[name] = GradientDescent(eta_RL, layers, law.Sigma_RDD if name.startswith("pgd") else None)
    if least_squares:
        predictors["ols"] = LeastSquares(law.context_R, law.Sigma_RDD)
        predictors["ols_raw"] = LeastSquares(law.context_R)
    losses_RC = context_losses(predictors, law, S_RCDD)
    return {
        "seeds": np.array(seeds),
        "context": np.array(law.context_R),
        "layers": np.full(len(seeds), layers),
        "weight": weight_RC.numpy(),
        "components": np.array([len(inflations) for inflations in tilted.inflations_R]),
        **{f"loss_{name}": loss_RC for name, loss_RC in losses_RC.items()},
        **(sampled_risk(tilted, model, streams, sizes.draws) if sizes.draws else {}),
        **{f"eta_{name}": eta_RL.numpy() for name, eta_RL in etas_RL.items()},
        **{f"exact_{name}": value_R for name, value_R in exact_values(law, layers, etas_RL).items()},
    }


def contexts(law: LinearRegressionLaw, seeds: list[int], role: str, count: int) -> Tensor:
    """S of `count` contexts of each replica: (R, C, D, D)."""
    return law.covariate_grams([generator(seed, role) for seed in seeds], count)


def search_steps(law: LinearRegressionLaw, S_RCDD: Tensor, layers: int) -> dict[str, Tensor]:
    """Return the best step sizes on these contexts: one for all steps (as in the paper), and one for each.

    Replicas differ in Sigma's rotation only, on which the best step sizes do not depend: those with as many
    examples share theirs, as in the paper.
    """
    names = {
        "gd_one": (False, False),
        "gd_steps": (False, True),
        "pgd_one": (True, False),
        "pgd_steps": (True, True),
    }
    found = {name: torch.empty(len(S_RCDD), layers, dtype=torch.float64) for name in names}
    for n in dict.fromkeys(law.context_R):
        same = torch.tensor([context == n for context in law.context_R])
        draw = Contexts(S_RCDD[same], law.label_root_REK[same], law.query_root_RED[same])
        for name, (preconditioned, per_step) in names.items():
            Sigma_RDD = law.Sigma_RDD[same] if preconditioned else None
            found[name][same] = search_gd(draw, layers, Sigma_RDD, per_step, shared=True).eta_RL
    return found


def context_losses(
    predictors: Mapping[str, PairedPredictor], law: LinearRegressionLaw, S_RCDD: Tensor
) -> dict[str, np.ndarray]:
    """Return the loss of each predictor on each context, (R, C). All meet the same prompts, but for sparse
    stacks, whose average over these prompts is known in closed form."""
    found: dict[str, list[Tensor]] = {name: [] for name in predictors}
    roots = law.label_root_REK, law.query_root_RED
    for S_RKDD in S_RCDD.split(CHUNK, dim=1):
        prompt = basis_prompts(law, S_RKDD)
        for name, predictor in predictors.items():
            if isinstance(predictor, LinearTransformer) and predictor.parametrization.sparse:
                S_RDDK = batch_last(S_RKDD)
                found[name].append(predictor.risk_of_contexts(S_RDDK, *roots, read_out=law.read_out))
                continue
            square_RB = (predictor.predict(prompt) - prompt.target_RB).square()
            found[name].append(square_RB.unflatten(1, (S_RKDD.shape[1], -1)).sum(-1))
    return {name: torch.cat(chunks, dim=1).numpy() for name, chunks in found.items()}


def basis_prompts(law: LinearRegressionLaw, S_RCDD: Tensor) -> GramPrompt:
    """Each context with every column w of Sigma_w's root as the task and x of Sigma's root as the query."""
    R, C, D, _ = S_RCDD.shape
    w_RD, x_RD = torch.broadcast_tensors(
        law.task_root_RDD.mT[:, None, :, None], law.root_RDD.mT[:, None, None, :]
    )  # (R, 1, tasks, queries, D)
    w_RCKD = w_RD.reshape(R, 1, D * D, D).expand(-1, C, -1, -1)
    x_RCKD = x_RD.reshape(R, 1, D * D, D).expand(-1, C, -1, -1)
    g_RCKD = w_RCKD @ S_RCDD
    gram_RCKPP = torch.empty(R, C, D * D, D + 1, D + 1, dtype=torch.float64)
    gram_RCKPP[..., :D, :D] = S_RCDD[:, :, None]
    gram_RCKPP[..., :D, D] = gram_RCKPP[..., D, :D] = g_RCKD
    gram_RCKPP[..., D, D] = (g_RCKD * w_RCKD).sum(-1)
    return GramPrompt(
        gram_RCKPP.flatten(1, 2),
        torch.nn.functional.pad(x_RCKD, (0, 1)).flatten(1, 2),
        (w_RCKD * x_RCKD).sum(-1).flatten(1, 2),
        law.read_out,
    )


def exact_values(
    law: LinearRegressionLaw, layers: int, etas_RL: Mapping[str, Tensor]
) -> dict[str, np.ndarray]:
    """Return the expected loss of PGD at the searched steps, at the best ones and as published; of (11) on
    S."""
    rows = []
    bests = {n: best_values(law.dim, n, layers) for n in set(law.context_R)}
    for r, n in enumerate(law.context_R):
        risk = InvariantRisk(law.dim, n, layers)
        searched = {name: risk.value(etas_RL[name][r].tolist()) for name in ("pgd_one", "pgd_steps")}
        rows.append(searched | bests[n])
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def best_values(dim: int, n: int, layers: int) -> dict[str, float]:
    """Best values on S for N examples and L steps, and those of the published baseline."""
    found = {"ols": float(max(dim - n, 0)), "pgd_optimum": InvariantRisk(dim, n, layers).optimum().risk}
    found |= dict.fromkeys(("pgd_published", "pgd_fewer"), float("nan"))
    if n > 1:
        fewer = InvariantRisk(dim, n - 1, layers)
        found["pgd_published"] = min(fewer.value([(n - 1) * eta] * layers) for eta in PUBLISHED_ETAS)
        # (1 - eta s)^2L is convex in eta, and beyond eta = 2 even s = 1, its mean, overshoots.
        best = minimize_scalar(lambda eta: fewer.value([eta] * layers), bounds=(0, 2), method="bounded")
        found["pgd_fewer"] = float(best.fun)
    if layers == 1:  # B has no effect
        return found | {"ab_best": found["pgd_optimum"], "ab_bound": found["pgd_optimum"]}
    family = InvariantRisk(dim, n, layers, with_b=True)
    minima = family.minimise(generator(0, "search", n), STARTS)
    found["ab_best"] = min((minimum.risk for minimum in minima), default=float("nan"))
    return found | {"ab_bound": float(family.lower_bound())}
