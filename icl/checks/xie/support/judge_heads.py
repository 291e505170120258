"""Given heads of multi-head LSA against the least risk of all and against one gradient step from w*."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from icl.checks.differences import DIFFERENCES
from icl.checks.given_weights import EXCESS, about_the_theorem
from icl.checks.numbers import exact, finding
from icl.checks.task_rule import BY_TASKS, risk_by_tasks
from icl.checks.verdict import Bound, Control, Finding, Weights
from icl.checks.xie.support.fewer_heads import certified_excess, predicted_risk
from icl.checks.xie.support.initial_guess import ROUNDING_OF_RISKS
from icl.checks.xie.support.saturation import Saturation, given_heads, with_guess
from icl.errors import InputError
from icl.random import generator
from icl.theory.xie.initial_guess import fewest_heads, gap, gd_risk
from icl.verdicts import decide, joint

CLOSED_FORMS = "closed forms"
MEANINGS = {
    "risk_excess": "excess of the risk at the weights over the least risk of any heads, relative, over seeds",
    "gradient_norm": "norm of the gradient of the population risk at the weights, the largest over seeds",
    "risk_excess_by_seed": "relative excess of the risk over the least risk of any heads, by seed",
    "risk_by_seed": "population risk at the weights, by seed",
    "bound_by_seed": "least risk of any heads, by seed",
    "gd_risk_by_seed": "risk of one gradient step from w*, by seed",
    "excess_over_gd_by_seed": "risk at the weights minus the risk of the step, by seed",
    "least_excess_over_gd_by_seed": "least risk of any heads minus the risk of the step, by seed",
    "gradient_norm_by_seed": "norm of the gradient of the population risk at the weights, by seed",
    "least_excess_with_fewer_heads_by_seed": "certified relative excess of one head fewer than suffice, by "
    "seed",
    "heads": "number of heads of the weights",
}


def judge_saturated(weights: Weights) -> Finding:
    """Theorem 1: compare weights of at least as many heads as saturate with the saturated risk."""
    laws, P_RHPP, Q_RHPP = given_heads(weights, "Theorem 1")
    heads = P_RHPP.shape[1]
    enough = max(fewest_heads(law.w_star_D, law.guess_D, law.bias) for law in laws)
    if heads < enough:
        raise InputError(
            f"check.weights: the least risk is the same from {enough} heads on, these have {heads}"
        )
    seeds = list(zip(laws, P_RHPP, Q_RHPP, strict=True))
    rows = [(law, *law.at(P_HPP, Q_HPP)) for law, P_HPP, Q_HPP in seeds]
    excesses = [risk / law.least.value - 1 for law, risk, _ in rows]
    halved = [law.at(P_HPP, Q_HPP / 2)[0] / law.least.value - 1 for law, P_HPP, Q_HPP in seeds]
    measured = {
        "risk_excess": float(np.max(excesses)),
        "gradient_norm": float(np.max([norm for *_, norm in rows])),
        "risk_excess_by_seed": excesses,
        "risk_by_seed": [risk for _, risk, _ in rows],
        "bound_by_seed": [law.least.value for law in laws],
        "gd_risk_by_seed": [law.descent_risk for law in laws],
        "excess_over_gd_by_seed": [risk - law.descent_risk for law, risk, _ in rows],
        "least_excess_over_gd_by_seed": [law.gap for law in laws],
        "gradient_norm_by_seed": [norm for *_, norm in rows],
        "least_excess_with_fewer_heads_by_seed": [
            certified_excess(law, enough - 1) / law.least.value for law in laws
        ],
        "heads": heads,
    }
    bound = Bound(
        EXCESS,
        f"the tolerance: exact risk within {EXCESS:.0%} of the least risk over all numbers of heads",
        "risk_excess",
    )
    near = [decide(excess, EXCESS) for excess in excesses]
    verdict, elsewhere = about_the_theorem(near, measured, bound)
    again, size = [risk_by_tasks(law.law, P, Q) for law, P, Q in seeds], max(law.size for law in laws)
    least, step = [predicted_risk(law) for law in laws], [gd_risk(law.dim, law.context) for law in laws]
    over = [risk / its - 1 for risk, its in zip(again, least, strict=True)]
    slopes = _by_differences(seeds)
    largest = max(law.at(*_like(P_HPP, Q_HPP))[1] for law, P_HPP, Q_HPP in seeds)
    numbers = {name: exact(**{name: value}).means(MEANINGS[name]) for name, value in measured.items()}
    for name, route, value, of in (
        ("risk_excess", f"{BY_TASKS}, and closed forms", max(over), size / min(least)),
        ("risk_excess_by_seed", f"{BY_TASKS}, and closed forms", over, size / min(least)),
        ("gradient_norm", DIFFERENCES, max(slopes), largest),
        ("gradient_norm_by_seed", DIFFERENCES, slopes, largest),
        ("risk_by_seed", BY_TASKS, again, size),
        ("bound_by_seed", CLOSED_FORMS, least, size),
        ("gd_risk_by_seed", CLOSED_FORMS, step, size),
        ("excess_over_gd_by_seed", f"{BY_TASKS}, and closed forms", _less(again, step), size),
        ("least_excess_over_gd_by_seed", CLOSED_FORMS, _less(least, step), size),
    ):
        numbers[name] = numbers[name].also_by(route, **{name: value}, size=of)
    numbers["heads"] = numbers["heads"].by_definition()
    numbers[bound.of] = numbers[bound.of].judged(verdict, "<", bound.value, bound.source)
    return finding(
        numbers.values(),
        Control(
            "the relative excess risk of the same weights with Q halved",
            float(np.min(halved)),
            all(decide(excess, EXCESS) == "fails" for excess in halved),
        ),
        notes=elsewhere,
    )


def judge_above_the_step(weights: Weights) -> Finding:
    """Section 5.1.1: compare the exact risk of these weights with the step's, for every seed."""
    laws, P_RHPP, Q_RHPP = given_heads(weights, "Section 5.1.1")
    if min(law.guess_error for law in laws) == 0:
        raise InputError("check.weights: section 5.1.1 is about w* != v or b != 0, their guess is w* itself")
    seeds = list(zip(laws, P_RHPP, Q_RHPP, strict=True))
    excesses = [law.at(P, Q)[0] - law.descent_risk for law, P, Q in seeds]
    roundings = [law.rounding for law in laws]
    controls = [_excess_at_the_prior(law) for law in laws]
    verdicts = [strict_verdict(*pair) for pair in zip(excesses, roundings, strict=True)]
    step, size = [gd_risk(law.dim, law.context) for law in laws], max(law.size for law in laws)
    again = _less([risk_by_tasks(law.law, P, Q) for law, P, Q in seeds], step)
    gaps = [gap(law.w_star_D, law.guess_D, law.bias, law.context) for law in laws]
    return finding(
        [
            exact(least_excess_over_gd=float(np.min(excesses)))
            .means("least excess of the risk at the weights over the risk of the gradient step, over seeds")
            .also_by(f"{BY_TASKS}, and closed forms", least_excess_over_gd=float(np.min(again)), size=size)
            .judged(joint(verdicts), ">", max(roundings), ROUNDING_OF_RISKS),
            exact(
                excess_over_gd_by_seed=excesses,
                least_possible_excess_by_seed=[law.gap for law in laws],
                gd_risk_by_seed=[law.descent_risk for law in laws],
                heads=P_RHPP.shape[1],
            )
            .means(
                excess_over_gd_by_seed="risk at the weights minus the risk of the step, by seed",
                least_possible_excess_by_seed="least risk of any heads minus the risk of the step, by seed",
                gd_risk_by_seed="risk of one gradient step from w*, by seed",
                heads="number of heads of the weights",
            )
            .by_definition()
            .also_by(f"{BY_TASKS}, and closed forms", excess_over_gd_by_seed=again, size=size)
            .also_by(CLOSED_FORMS, gd_risk_by_seed=step, least_possible_excess_by_seed=gaps, size=size),
        ],
        Control(
            "the excess over the step of the weights of least risk for y_q = <w*, x_q>",
            float(np.max(np.abs([excess for excess, _ in controls]))),
            all(strict_verdict(*pair) != "holds" for pair in controls),
        ),
    )


def _by_differences(seeds: Sequence[tuple[Saturation, Tensor, Tensor]]) -> list[float]:
    return [law.norm_by_differences(P, Q, generator(0, "check", r)) for r, (law, P, Q) in enumerate(seeds)]


def _like(P_HPP: Tensor, Q_HPP: Tensor) -> tuple[Tensor, Tensor]:
    """Return random heads of the same size: the gradient there is one of the size of its terms."""
    size, rng = max(float(P_HPP.norm()), float(Q_HPP.norm())), generator(0, "check")
    P, Q = (torch.from_numpy(rng.standard_normal(tuple(P_HPP.shape))) for _ in range(2))
    return P * (size / P.norm()), Q * (size / Q.norm())


def _less(risks: Sequence[float], others: Sequence[float]) -> list[float]:
    return [risk - other for risk, other in zip(risks, others, strict=True)]


def strict_verdict(gap: float, rounding: float) -> str:
    """Return the verdict on a gap above zero."""
    return decide(-gap, 0.0, rounding)


def _excess_at_the_prior(law: Saturation) -> tuple[float, float]:
    """Return the excess of the best weights with y_q = <w*, x_q>, the step itself, and its rounding."""
    exact = Saturation(with_guess(law.law, law.w_star_D))
    return exact.at(*exact.heads())[0] - law.descent_risk, exact.rounding
