"""Claims that Figures 1 to 5 of xie share. R seeds, S steps, X settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from icl.figures.claims import Claim, ClaimNumbers, all_of, exact

NEAR = 0.01  # of the risk that training is to reach
SHORT = 0.05  # and for a few hundred steps on minibatches
SLOPE = 0.05  # of the stated slope
R_SQUARED = 0.99
ROUNDING = 1e-9  # of a risk
Kind = Callable[[float], ClaimNumbers]  # exact or searched


def linear(what: str, squared_X: np.ndarray, gap_XR: np.ndarray, slope: float) -> Claim:
    """Claim that the trained gaps of all seeds lie on a line of the stated slope."""
    x_N, y_N = np.repeat(squared_X, gap_XR.shape[1]), gap_XR.ravel()
    fitted, intercept = np.polyfit(x_N, y_N, 1)
    left = float(np.square(y_N - fitted * x_N - intercept).sum() / np.square(y_N - y_N.mean()).sum())
    error = abs(float(fitted) / slope - 1)
    return Claim.of(
        f"the final gap to one-step GD is linear in {what}, of slope 2/(dC + 2)",
        {"fitted slope": float(fitted), "2/(dC + 2)": slope, "intercept": float(intercept), "R^2": 1 - left},
        all_of(
            f"slope within {SLOPE:.0%} of 2/(dC + 2), R^2 above {R_SQUARED}",
            exact(error).below(SLOPE),
            exact(1 - left).above(R_SQUARED),
        ),
    )


def closed_form(claim: str, any_heads_X: np.ndarray, stated_X: np.ndarray) -> Claim:
    """Compare the least risk over all heads, a linear solve at every setting, with the closed form."""
    error = float(np.abs(any_heads_X / stated_X - 1).max())
    return Claim.of(
        claim,
        {"largest relative error": error, "least risks": any_heads_X.tolist()},
        exact(error).below(ROUNDING, f"below {ROUNDING:g}, rounding"),
        trained=False,
    )


def not_below(claim: str, risk_XR: np.ndarray, least_X: np.ndarray | float) -> Claim:
    """Compare exact risks with a lower bound, which holds for any weights, trained or not."""
    margin_XR = risk_XR / np.reshape(least_X, (-1, 1)) - 1
    return Claim.of(
        claim,
        {"least margin": float(margin_XR.min()), "largest": float(margin_XR.max())},
        exact(margin_XR.min()).above(
            -ROUNDING, f"no run further below than rounding, {ROUNDING:g} of the risk"
        ),
        trained=False,
    )


def ends_at(
    claim: str, risk_XR: np.ndarray, least_X: np.ndarray, names: list[str], number: Kind = exact
) -> Claim:
    """Claim that training ends at the risk stated, a `number` of its kind."""
    excess_XR = risk_XR / least_X[:, None] - 1
    return Claim.of(
        claim,
        {name: float(excess_R.max()) for name, excess_R in zip(names, excess_XR, strict=True)},
        number(excess_XR.max()).below(NEAR, f"excess below {NEAR:.0%} in every seed (largest shown)"),
    )


def minibatches(
    arrays: Mapping[str, np.ndarray], name: str, letter: str, least_X: np.ndarray, number: Kind = exact
) -> list[Claim]:
    """Compare the ends of short minibatch runs with the least risk of their setting, if there are any."""
    least = dict(zip(arrays[name].tolist(), least_X.tolist(), strict=True))
    short = zip(arrays[f"minibatch_{name}"].tolist(), arrays.get("minibatch_risk_XRS", ()), strict=True)
    excess = {value: risk_RS[:, -1] / least[value] - 1 for value, risk_RS in short if value in least}
    if not excess:
        return []
    worst = float(np.max(list(excess.values())))
    return [
        Claim.of(
            "a few hundred steps on minibatches, as in the paper, approach the same risks",
            {f"{letter} = {value:g}": float(excess_R.max()) for value, excess_R in excess.items()},
            number(worst).below(SHORT, f"excess below {SHORT:.0%} in every seed (largest shown)"),
        )
    ]
