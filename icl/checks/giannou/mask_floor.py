"""Scalar layers of linear attention without a mask, as in giannou: a floor of the loss at every depth.

The query token (x_q, 0) attends to itself. With S' = (sum_i x_i x_i^T + x_q x_q^T) / n and layers A_l =
-a_l I, B_l = (beta_l / a_l) I in the notation of eq. (11), every layer is a function of S', and c times the
read-out leaves the error w^T e, e = x_q - c [x_q - r(S') x_q - x_q (x_q^T S'^{-1} (I - r(S')) x_q) / n],
r(s) = prod_l (1 - a_l s p_l^2), p_{l+1} = p_l (1 - beta_l s p_l^2), p_1 = 1.

The query's own part of the risk is integrated exactly (icl.checks.giannou.support.unmasked_attention).
B spectra, D covariates, N = n context, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from icl.checks.giannou.support import step_sizes
from icl.checks.giannou.support import unmasked_attention as attention
from icl.checks.giannou.support.step_sizes import MOST_LAYERS, SIGMAS
from icl.checks.giannou.support.unmasked_evidence import compare_integrals, compare_with_tokens, trace_z
from icl.checks.numbers import Numbers, finding, sampled
from icl.checks.settings import in_range, integer, validate
from icl.checks.verdict import Control, Finding
from icl.errors import InputError
from icl.random import generator
from icl.theory.quadratic import EPSILON

SIGMAS_OF_SIX = 3.7653  # a two-sided 99.9 % interval shared among six
INTEGRATED = 50  # spectra whose integrals are taken term by term
SEARCH = "the search over step sizes takes minutes"
LEVEL = "99.9 % quantile of a normal variable, shared among those compared"
REMARKS = [
    "Section 6 explains by training that LSA does not improve beyond four layers. Without a mask, part of "
    "the effect is structural for scalar layers: the token of the query enters every sum, and no function "
    "of S' that such layers can build, of any degree, removes it. With the mask of the other papers there "
    "is no floor. The floor is that of the family with A_l and B_l multiples of I, whose updates of y "
    "read x alone. It is not a floor of linear attention: heads with free P and Q can have a smaller "
    "loss, and clipping and LayerNorm are not covered.",
]


@dataclass(eq=False)
class MaskFloor:
    """Settings: sizes, most layers, number of spectra (`samples`), seed. x and w are N(0, I), no noise."""

    reference = "icl, beside section 6, linear regression, and eq. (3.1a) without a mask"
    claim = (
        "This project's statement: without a mask, scalar layers of linear attention, with every A_l and "
        "B_l a multiple of I, have a loss above a positive floor at every depth; with a mask they pass "
        "below it."
    )

    dim: int = integer(5, 1, 50, SEARCH)
    context: int = integer(25, 1, 5000, "drawing the contexts takes minutes")
    layers: int = integer(4, 1, MOST_LAYERS, SEARCH)
    seed: int = integer(0, 0)
    samples: int = integer(10_000, 200)

    def __post_init__(self) -> None:
        validate(self)
        if self.context <= self.dim:
            raise InputError(
                f"check.context={self.context}: must be above check.dim={self.dim}, so that S is invertible"
            )
        in_range("check.samples", self.samples, 200, 10**6 // self.dim, "the spectra take a gigabyte")

    def measure(self) -> Finding:
        rng, n, own = generator(self.seed, "check"), self.context, self.context + 1
        own_BD = attention.spectra(rng, self.samples, own, self.dim) * own / n
        fresh_BD = attention.spectra(rng, self.samples, own, self.dim) * own / n
        masked_BD = attention.spectra(rng, self.samples, n, self.dim)
        floor_B = attention.risk_of_best_function(own_BD, fresh_BD, n)
        least_B = attention.least_by_spectrum(fresh_BD, n)
        least = float(least_B.mean())
        lower = least - SIGMAS * attention.stderr(least_B)
        unmasked = step_sizes.risks_by_layers(
            fresh_BD, lambda g, s: attention.unmasked_risk(g, s, n), self.layers
        )
        masked = step_sizes.risks_by_layers(
            masked_BD, lambda g, s: (1 - g).square().mean(-1), self.layers, lower
        )
        lowest_B, deepest_B = min(unmasked, key=lambda risk_B: float(risk_B.mean())), masked[-1]
        # The fitted function is at least as good as any that layers build, on spectra it has not seen.
        floor_z = float((floor_B - lowest_B).mean()) / (attention.stderr(floor_B - lowest_B) + EPSILON)
        spectra = ((own_BD, own), (fresh_BD, own), (masked_BD, n))
        traces_z = max(trace_z(lambda_BD, n, tokens) for lambda_BD, tokens in spectra)
        return finding(
            [
                sampled(floor_lower=lower)
                .means("lower end of the 99.9 % interval of the least loss of scalar layers at any depth")
                .above(0.0, "the claim"),
                compare_integrals(fresh_BD[:INTEGRATED], n, generator(self.seed, "control", 1)),
                compare_with_tokens(self.dim, n, generator(self.seed, "control")),
                sampled(trace_z=traces_z)
                .means("largest deviation of E tr S and E tr S^2 from their closed forms, in standard errors")
                .at_most(SIGMAS_OF_SIX, LEVEL, otherwise="undecided"),
                sampled(floor_z=floor_z)
                .means(
                    "loss of the best function minus the least loss of the layers found, in standard errors"
                )
                .at_most(SIGMAS, LEVEL, otherwise="undecided"),
                # in one dimension the two are the same function
                sampled(floor=float(floor_B.mean()))
                .means("loss of the best function of an eigenvalue")
                .above(
                    least - EPSILON * (self.dim + 16) * 64,
                    "the least risk of any function of the whole spectrum, minus rounding",
                    otherwise="undecided",
                ),
                sampled(floor_stderr=attention.stderr(floor_B)),
                sampled(
                    unmasked_lowest=float(lowest_B.mean()), unmasked_lowest_stderr=attention.stderr(lowest_B)
                ).means(unmasked_lowest="least loss of unmasked scalar layers found at any depth"),
                _means("unmasked_by_layers", unmasked),
                _means("masked_by_layers", masked),
            ],
            Control(
                f"the loss of masked scalar layers at depth {len(masked)}, which must be below the floor",
                float(deepest_B.mean()),
                float(deepest_B.mean()) + SIGMAS * attention.stderr(deepest_B) < lower,
            ),
            notes=[
                "Losses are divided by d, and Sigma = I. The lower bound holds for every function of the "
                "whole spectrum; the floor is the loss of the best function of an eigenvalue, fitted on "
                "other spectra. The part of the query is integrated exactly.",
                "The losses by depth are those of the best step sizes found, and therefore upper bounds "
                "of the optimum at each depth.",
            ],
            remarks=REMARKS,
        )


def _means(name: str, risks_LB: list[Tensor]) -> Numbers:
    """Return mean risks and their standard errors."""
    errors = [attention.stderr(risk_B) for risk_B in risks_LB]
    kind = name.partition("_")[0]
    means = {name: [float(risk_B.mean()) for risk_B in risks_LB], f"{name}_stderr": errors}
    return sampled(**means).means(
        **{name: f"loss of {kind} scalar layers with the best step sizes found, by depth"}
    )
