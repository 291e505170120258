"""Weights to be judged: whether a theorem is about them, and whether every seed is at the stated point.

Weights at another point, such as those of a short run, refute no theorem: the verdict is undecided.

A row holds what was measured at one seed. Rows of all theorems share these names: `distance` to the stated
weights (or set), `risk_excess` over the least risk, relative, `gradient_norm` of the population risk.

R seeds, L layers, H heads, D covariates, P = D + 1 token width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from icl.checks.numbers import finding, of_kind
from icl.checks.rounding import ROUNDING
from icl.checks.verdict import Bound, Control, Finding, Weights
from icl.errors import InputError
from icl.models import Full, Parametrization, SparseA, SparseAB
from icl.tasks import LinearRegressionLaw
from icl.text import inequality, relation
from icl.verdicts import decide, joint

DISTANCE = 0.05  # the tolerance of ahn's figures
EXCESS = 0.02
FAMILIES: dict[str, type[Parametrization]] = {"full": Full, "sparse_a": SparseA, "sparse_ab": SparseAB}
WORST = ("distance", "risk_excess", "risk_excess_over_best", "gradient_norm", "gradient_norm_stderr")

LEAST_SQUARES = "a least squares fit by LAPACK"
MEANINGS = {
    "distance": "distance of the weights from the stated ones, relative",
    "risk": "population risk at the weights",
    "risk_excess": "excess of the risk at the weights over the risk at the stated point, relative",
    "risk_excess_error": "half-width of the 99.9 % interval of the relative excess",
    "risk_excess_over_best": "excess of the risk over the lowest minimum found, relative",
    "gradient_norm": "norm of the gradient of the population risk at the weights",
    "gradient_norm_stderr": "standard error of the gradient norm",
    "risk_on_s": "population risk at the nearest point of S",
    "optimal_risk": "least population risk",
    "gd_risk": "risk of one gradient step at its best step size",
    "weight": "weight of y_t y_(t+1) in the prediction",
    "constant": "constant of eq. (14)",
    "risk_shift": "risk at the weights minus risk at the nearest point of S",
    "risk_shift_error": "half-width of the 99.9 % interval of that difference",
}

Row = Mapping[str, float]


class Again(NamedTuple):
    """A second computation of a column: what it is, its value for every seed, and the size of its terms."""

    route: str
    by_seed: Sequence[float]
    size: float = 0.0


def require_family(
    weights: Weights, statement: str, families: Sequence[str], activation: str = "identity"
) -> None:
    if weights.family not in families or weights.activation != activation:
        raise InputError(
            f"check.weights: {statement} is about family {' or '.join(families)} with activation "
            f"{activation}, not {weights.family} with {weights.activation}"
        )


def require_law(law: LinearRegressionLaw, statement: str, identities: Mapping[str, Tensor]) -> None:
    """Refuse weights of a law whose matrices (R, D, D) in `identities`, by assumption, are not I."""
    identity = torch.eye(law.dim, dtype=torch.float64)
    rounding = ROUNDING * float(torch.linalg.cond(law.Sigma_RDD).max())
    for assumption, M_RDD in identities.items():
        if float((M_RDD - identity).abs().max()) > rounding:
            raise InputError(
                f"check.weights: {statement} takes {assumption}, their law has another covariance"
            )
    if law.label_noise or law.mean_RD.any() or law.guesses or law.read_out != -1:
        raise InputError(
            f"check.weights: {statement} takes w of mean 0, labels without noise, no initial guess and "
            "read_out -1"
        )


def single_layer(weights: Weights, statement: str) -> tuple[Tensor, Tensor]:
    """P and Q (R, P, P) of one layer with one head, of any family."""
    depth = next((matrix.shape[1] for matrix in weights.matrices.values()), 0)
    if depth != 1:
        raise InputError(f"check.weights: {statement} is about one layer, these have {depth} layers")
    model = FAMILIES[weights.family](weights.law.dim, 1)
    model.load({name: matrix.to(torch.float64) for name, matrix in weights.matrices.items()})
    P_RLHPP, Q_RLHPP = model.stack()
    return P_RLHPP[:, 0, 0].detach(), Q_RLHPP[:, 0, 0].detach()


def distance_by_least_squares(M_DD: Tensor) -> float:
    """Return the distance of a matrix from the multiples of I, relative, once more."""
    identity = torch.eye(len(M_DD), dtype=torch.float64).flatten()[:, None].numpy()
    entries = M_DD.flatten().numpy()
    factor = np.linalg.lstsq(identity, entries, rcond=None)[0]
    return float(np.linalg.norm(entries - identity @ factor) / np.linalg.norm(entries))


def conditions(row: Row) -> dict[str, str]:
    """Return the verdicts on one seed, by what they are about."""
    risk = decide(row["risk_excess"], EXCESS, row.get("risk_excess_error", 0.0))
    return {"distance": decide(row["distance"], DISTANCE), "risk_excess": risk}


def near(row: Row) -> str:
    """Return the verdict on one seed."""
    return joint(list(conditions(row).values()))


def that_decides(rows: Sequence[Row], bound: Bound) -> Bound:
    """`bound`, or that of the other condition where the verdict rests on the other alone."""
    verdict = joint([near(row) for row in rows])
    deciding = {of for row in rows for of, its in conditions(row).items() if its == verdict}
    if bound.of in deciding:
        return bound
    of = deciding.pop()
    return replace(bound, value=DISTANCE if of == "distance" else EXCESS, of=of)


def about_the_theorem(
    near_by_seed: Sequence[str], measured: Mapping[str, Any], bound: Bound
) -> tuple[str, list[str]]:
    """Return the verdict, from whether each seed's weights are near the stated ones; a note where some are
    not."""
    verdict = joint(near_by_seed)
    if verdict != "fails":
        return verdict, []
    away = [str(seed) for seed, near in enumerate(near_by_seed) if near == "fails"]
    which = "these weights are" if len(near_by_seed) == 1 else f"the weights of replica {', '.join(away)} are"
    compared = inequality(relation(measured, asdict(bound)))
    return "undecided", [
        f"undecided: {which} not at the stated point ({compared}). That does not refute the statement, which "
        "does not say that every run converges to it. A longer run may (train.steps); without check.weights "
        "the statement itself is measured."
    ]


def meaning_of(name: str) -> str:
    """Return in one line what a column of rows is, or the worst of its entries."""
    column = name.removesuffix("_by_seed")
    if column != name:
        return f"{MEANINGS[column]}, by seed"
    return f"{MEANINGS[name]}, the largest over seeds" if name in WORST else MEANINGS[name]


def judge_rows(
    rows: Sequence[Row],
    control_rows: Sequence[Row],
    bound: Bound,
    control: str,
    control_name: str = "distance",
    notes: Sequence[str] = (),
    kinds: Mapping[str, str] = MappingProxyType({}),
    again: Mapping[str, Again] = MappingProxyType({}),
) -> Finding:
    """Return `holds` if every seed is near and no control is; `undecided` where one is not. `kinds` names the
    columns that are not exact, `again` has those that are computed twice."""
    by_seed = {name: [row[name] for row in rows] for name in rows[0]}
    # numpy's maximum: a NaN in one seed must not hide behind the others
    worst = {name: float(np.max(by_seed[name])) for name in WORST if name in by_seed}
    measured = worst | {f"{name}_by_seed": values for name, values in by_seed.items()}
    shown = that_decides(rows, bound)
    verdict, elsewhere = about_the_theorem([near(row) for row in rows], measured, shown)
    numbers = {
        name: of_kind(kinds.get(name.removesuffix("_by_seed"), "exact"), **{name: value}).means(
            meaning_of(name)
        )
        for name, value in measured.items()
    }
    for name, number in numbers.items():
        if number[0].kind == "exact" and name.removesuffix("_by_seed").endswith(("_error", "_stderr")):
            numbers[name] = number.by_definition()  # 0, as what it is the error of is exact
    for column, (route, values, size) in again.items():
        for name, value in ((f"{column}_by_seed", values), (column, float(np.max(values)))):
            if name in numbers:
                numbers[name] = numbers[name].also_by(route, **{name: value}, size=size)
    numbers[shown.of] = numbers[shown.of].judged(verdict, "<", shown.value, shown.source)
    return finding(
        numbers.values(),
        Control(
            control,
            float(np.min([row[control_name] for row in control_rows])),
            all(near(row) == "fails" for row in control_rows),
        ),
        notes=[*elsewhere, *notes],
    )
