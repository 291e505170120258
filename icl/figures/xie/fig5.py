"""Figure 5 of xie: y_q-LSA on its way to one-step GD, by its risk and by what it predicts (C.2).

R seeds, S stored steps, X priors, B prompts, D covariates, P token width, Q quantiles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from icl.errors import real, whole
from icl.figures.claims import Claim, exact, sampled
from icl.figures.figure import Layout, Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import BLUE, GREEN, RED, exact_line, quantiles, step_axis
from icl.figures.training import KEY
from icl.figures.xie.runs import Arrays, Swept, ends_at, excess_by, identity
from icl.models import LinearTransformer
from icl.models.batched import batch_last
from icl.models.gram import stack_output
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks.linear_regression import linear_regression
from icl.theory.closed_forms import isotropic_step
from icl.training.load import restored

QUANTILES = (0.1, 0.5, 0.9)  # over prompts, all seeds together
SMALL = 0.05  # of GD's prediction or gradient, root mean square
COSINE = 0.99


@dataclass(kw_only=True, eq=False)
class Fig5(Swept):
    """Records: a run of y_q-LSA for every prior, minibatch runs for some, `exact`, and `alignment` with one
    GD step from w* on the same `prompts` of each seed, for the prior `alignment_squared_norm`."""

    squared_norms: Sequence[float]
    minibatch_squared_norms: Sequence[float]
    alignment_squared_norm: float
    prompts: int

    layout = Layout(("a", "b", "c"), (2.6, 2.2))
    id, run_name, values, array, least = "fig5", "w*^2=", "squared_norms", "squared_X", 1

    def __post_init__(self) -> None:
        super().__post_init__()
        real(f"{KEY}.alignment_squared_norm", self.alignment_squared_norm, 0)
        whole(f"{KEY}.prompts", self.prompts, 2)

    def train(self, runner: Runner, value: float, **how: Any) -> RunRecord:
        return self.yq_lsa(runner, prior=value, **how)

    def exact(self) -> Mapping[str, Any]:
        return {"gd": self.closed_forms["gd"]}

    def runs(self, runner: Runner) -> dict[str, RunRecord]:
        found = super().runs(runner)
        aligned = self.yq_lsa(runner, prior=self.alignment_squared_norm)
        science = {"of": identity([aligned]), "prompts": self.prompts}
        alignment = self.store(runner, "fig5_alignment", science, lambda: alignment_of(aligned, self.prompts))
        return found | {"aligned": aligned, "alignment": alignment}

    def draw(self, panels: Panels, records: Records) -> None:
        arrays, aligned = records["exact"].weights, records["alignment"].weights
        steps_S = aligned["steps_S"]
        self.draw_losses(panels["a"], r"$\|w^*\|^2$", arrays)
        exact_line(panels["a"], float(arrays["gd"]), "one-step GD")
        panels["a"].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        quantiles(panels["b"], steps_S, aligned["prediction_SQ"], BLUE, "predictions")
        quantiles(panels["b"], steps_S, aligned["gradient_SQ"], RED, "gradients", linestyle="--")
        squared = rf"$\|w^*\|^2 = {float(aligned['squared']):g}$"
        panels["b"].set(title=f"(b) differences, {squared}", yscale="log", ylabel="difference to GD")
        panels["b"].legend(loc="lower left")
        quantiles(panels["c"], steps_S, aligned["cosine_SQ"], GREEN, "cosine")
        panels["c"].set(title="(c) cosine of the gradients", ylim=(None, 1.02))
        for panel in "bc":
            step_axis(panels[panel], steps_S[-1])

    def claims(self, records: Records) -> list[Claim]:
        arrays, aligned = records["exact"].weights, records["alignment"].weights
        squared_X, gd = arrays["squared_X"], float(arrays["gd"])
        excess = excess_by("|w*|^2", squared_X, arrays["risk_XRS"][..., -1], gd)
        return [
            ends_at("the trained risk is that of one-step GD for every prior mean", excess, exact),
            _to_zero("prediction", aligned),
            _to_zero("gradient", aligned),
            _cosine(aligned["cosine_mean_RS"]),
            *self.minibatches(arrays, "|w*|^2", np.full(squared_X.shape, gd), exact),
        ]


def _to_zero(what: str, aligned: Arrays) -> Claim:
    ratio_RS = np.sqrt(aligned[f"{what}_square_RS"] / aligned[f"descent_{what}_R"][:, None])
    return Claim.of(
        f"the difference of the {what}s converges to 0",
        {"at the start": float(ratio_RS[:, 0].mean()), "largest at the end": float(ratio_RS[:, -1].max())},
        sampled(ratio_RS[:, -1].max()).below(
            SMALL,
            f"root mean square over the prompts below {SMALL:.0%} of that of GD's {what}s in every seed",
        ),
    )


def _cosine(cosine_RS: np.ndarray) -> Claim:
    return Claim.of(
        "the gradients align: their cosine ends at 1",
        {"at the start": float(cosine_RS[:, 0].mean()), "least at the end": float(cosine_RS[:, -1].min())},
        sampled(cosine_RS[:, -1].min()).above(COSINE, f"mean over the prompts above {COSINE} in every seed"),
    )


def alignment_of(run: RunRecord, prompts: int) -> dict[str, np.ndarray]:
    """C.2's three metrics at every stored step: quantiles over prompts (S, Q), and of each seed the mean
    square of a difference or the mean cosine (R, S)."""
    trained, seeds = restored(run), run.run["seeds"]
    law = linear_regression(trained.law, "C.2's alignment")
    prompt = law.gram_prompts([generator(seed, "eval") for seed in seeds], prompts)
    x_RBD = prompt.query_RBP[..., : law.dim]
    step_RBD = descent_gradients(prompt.gram_RBPP, law.mean_RD, law.context_R[0])
    kept: dict[str, list[np.ndarray]] = {"prediction": [], "gradient": [], "cosine": []}
    for _, model in trained.stored_models():
        model_RBD = input_gradients(model, prompt.gram_RBPP)
        kept["prediction"].append(((model_RBD - step_RBD) * x_RBD).sum(-1).abs().numpy())
        kept["gradient"].append((model_RBD - step_RBD).norm(dim=-1).numpy())
        kept["cosine"].append(torch.cosine_similarity(model_RBD, step_RBD, dim=-1).numpy())
    values = {name: np.stack(found, axis=1) for name, found in kept.items()}  # (R, S, B)
    return {
        "steps_S": run.weights["history_steps"],
        "squared": np.array(float(law.mean_RD[0].square().sum())),
        "descent_prediction_R": (step_RBD * x_RBD).sum(-1).square().mean(-1).numpy(),
        "descent_gradient_R": step_RBD.square().sum(-1).mean(-1).numpy(),
        "cosine_mean_RS": values["cosine"].mean(-1),
        **{f"{name}_square_RS": np.square(values[name]).mean(-1) for name in ("prediction", "gradient")},
        **{f"{name}_SQ": np.quantile(y_RSB, QUANTILES, axis=(0, 2)).T for name, y_RSB in values.items()},
    }


def input_gradients(model: LinearTransformer, gram_RBPP: Tensor) -> Tensor:
    """Return the gradient of the prediction in x_q, (R, B, D): the prediction is linear in x_q, whose guess
    is the model's own, so these are the predictions at the unit vectors."""
    family, (_, P) = model.parametrization, gram_RBPP.shape[2:]
    unit_RPK = torch.eye(P, P - 1, dtype=torch.float64).expand(len(gram_RBPP), -1, -1)
    read_in_RPP, output_RP = family.io_maps()
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
