"""Figure 5 of xie: y_q-LSA on its way to one-step GD, by its risk and by what it predicts (C.2).

R seeds, S stored steps, X priors, B prompts, D covariates, P token width, Q quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from icl.errors import real, whole
from icl.experiments.runner import Runner
from icl.experiments.xie.runs import (
    KEY,
    Minibatch,
    RunSize,
    curves,
    identity,
    risks,
    squares,
    store,
)
from icl.models import LinearTransformer
from icl.models.batched import batch_last
from icl.models.gram import stack_output
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks.linear_regression import linear_regression
from icl.theory.closed_forms import isotropic_step
from icl.theory.xie.initial_guess import gd_risk
from icl.training.load import restored

QUANTILES = (0.1, 0.5, 0.9)  # over prompts, all seeds together
METRICS = ("prediction", "gradient", "cosine")


class Fig5:
    """records: a run of y_q-LSA for every prior, minibatch runs for some, `exact`, and `alignment` with one
    GD step from w* on the same `prompts` of each seed, for the prior `alignment_squared_norm`."""

    def __init__(
        self,
        dim: int,
        context: int,
        seeds: Sequence[int],
        squared_norms: Sequence[float],
        minibatch_squared_norms: Sequence[float],
        minibatch_steps: int,
        minibatch_size: int,
        alignment_squared_norm: float,
        prompts: int,
        steps: int | None = None,
        lr: float | None = None,
    ) -> None:
        self.size = RunSize(dim, context, seeds, steps, lr)
        self.priors = squares(f"{KEY}.squared_norms", squared_norms)
        self.minibatch = Minibatch(minibatch_steps, minibatch_size)
        self.minibatch_priors = squares(f"{KEY}.minibatch_squared_norms", minibatch_squared_norms, least=0)
        self.aligned = real(f"{KEY}.alignment_squared_norm", alignment_squared_norm, 0)
        self.prompts = whole(f"{KEY}.prompts", prompts, 2)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        runs = {f"w*^2={s:g}": self.size.yq_lsa(runner, prior=s) for s in self.priors}
        short = {
            f"minibatch w*^2={s:g}": self.size.yq_lsa(runner, prior=s, minibatch=self.minibatch)
            for s in self.minibatch_priors
        }
        aligned = self.size.yq_lsa(runner, prior=self.aligned)
        seeds = list(self.size.seeds)
        science = {"of": identity(runs.values()), "minibatch": identity(short.values()), "seeds": seeds}
        exact = store(
            runner, "xie/fig5_exact", science, lambda: self._exact(list(runs.values()), list(short.values()))
        )
        science = {"of": identity([aligned]), "prompts": self.prompts, "seeds": seeds}
        alignment = store(runner, "xie/fig5_alignment", science, lambda: alignment_of(aligned, self.prompts))
        return runs | short | {"aligned": aligned, "exact": exact, "alignment": alignment}

    def _exact(self, runs: Sequence[RunRecord], short: Sequence[RunRecord]) -> dict[str, np.ndarray]:
        found = {
            "squared_X": np.array(self.priors),
            **curves(runs),
            "gd": np.array(gd_risk(self.size.dim, self.size.context)),
            "minibatch_squared_X": np.array(self.minibatch_priors),
        }
        return found | ({f"minibatch_{k}": v for k, v in curves(short).items()} if short else {})


def alignment_of(run: RunRecord, prompts: int) -> dict[str, np.ndarray]:
    """C.2's three metrics at every stored step: quantiles over prompts (S, Q), and of each seed the mean
    square of a difference, with its standard error, or the mean cosine (R, S)."""
    trained, seeds = restored(run), run.run["seeds"]
    law = linear_regression(trained.law, "C.2's alignment")
    prompt = law.gram_prompts([generator(seed, "eval") for seed in seeds], prompts)
    x_RBD = prompt.query_RBP[..., : law.dim]
    step_RBD = descent_gradients(prompt.gram_RBPP, law.mean_RD, law.context_R[0])
    kept: dict[str, list[np.ndarray]] = {name: [] for name in METRICS}
    for _, model in trained.stored_models():
        model_RBD = input_gradients(model, prompt.gram_RBPP)
        kept["prediction"].append(((model_RBD - step_RBD) * x_RBD).sum(-1).abs().numpy())
        kept["gradient"].append((model_RBD - step_RBD).norm(dim=-1).numpy())
        kept["cosine"].append(torch.cosine_similarity(model_RBD, step_RBD, dim=-1).numpy())
    values = {name: np.stack(found, axis=1) for name, found in kept.items()}  # (R, S, B)
    found = {
        "steps_S": run.weights["history_steps"],
        "squared": np.array(float(law.mean_RD[0].square().sum())),
        "risk_RS": risks(run),
        "descent_prediction_R": (step_RBD * x_RBD).sum(-1).square().mean(-1).numpy(),
        "descent_gradient_R": step_RBD.square().sum(-1).mean(-1).numpy(),
        "cosine_mean_RS": values["cosine"].mean(-1),
    }
    for name, value_RSB in values.items():
        found[f"{name}_SQ"] = np.quantile(value_RSB, QUANTILES, axis=(0, 2)).T
    for name in ("prediction", "gradient"):
        square_RSB = np.square(values[name])
        found[f"{name}_square_RS"] = square_RSB.mean(-1)
        found[f"{name}_stderr_RS"] = square_RSB.std(-1, ddof=1) / prompts**0.5
    return found


def input_gradients(model: LinearTransformer, gram_RBPP: Tensor) -> Tensor:
    """Return the gradient of the prediction in x_q, (R, B, D): the prediction is linear in x_q, whose guess
    is the model's own, so these are the predictions at the unit vectors."""
    family, (_, P) = model.parametrization, gram_RBPP.shape[2:]
    unit_RPK = torch.eye(P, P - 1, dtype=torch.float64).expand(len(gram_RBPP), -1, -1)
    read_in_RPP, output_RP = family.ends()
    if read_in_RPP is not None:
        unit_RPK = read_in_RPP @ unit_RPK
    columns_RPKB = unit_RPK[..., None].expand(-1, -1, -1, gram_RBPP.shape[1])
    return stack_output(*family.stack(), batch_last(gram_RBPP), columns_RPKB, output_RP).transpose(1, 2)


def descent_gradients(gram_RBPP: Tensor, mean_RD: Tensor, context: int) -> Tensor:
    """Return the weights one GD step from w* gives, eq. (10) at the best eta: the gradient of its
    prediction."""
    D = mean_RD.shape[-1]
    residual_RBD = gram_RBPP[..., :D, D] - (gram_RBPP[..., :D, :D] @ mean_RD[:, None, :, None])[..., 0]
    return mean_RD[:, None] + isotropic_step(D, context) * residual_RBD
