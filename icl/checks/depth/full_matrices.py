"""Own: under random rotations separate matrices do no better than separate multiples of the identity."""

from dataclasses import dataclass

from flint import fmpq, fmpq_mat

from icl.checks.depth.settings import OWN
from icl.checks.statement import Measured, Statement, setting
from icl.theory.depth.matrices import rotated_errors, signed_permutations
from icl.theory.depth.steps import atoms
from icl.theory.depth.steps import risk as step_risk
from icl.theory.rationals import diagonal, identity, matrix, trace
from icl.theory.wishart import best_polynomial

LARGE = "the group of signed permutations is too large"


@dataclass
class FullMatrices(Statement):
    layers: int = setting(2, 1, 3, most=6, beyond=LARGE)
    dim: int = setting(4, 1, most=6, beyond=LARGE, draw=lambda rng, _, of: rng.randint(of["layers"] + 1, 5))

    paper, where, title, origin = "depth", OWN, "Separate matrices gain nothing under rotations", "icl"
    law = "x ~ N(0, O Lambda O^T), beta ~ N(0, O Omega O^T), O Haar, new in each context; P = infinity"
    claim = "No L matrices have a lower risk than the best L multiples of I."
    formula = r"R(\Gamma_1, .., \Gamma_L) \ge \min_g \mathrm{tr}\, \Lambda \Omega \prod_l (I - g_l \Lambda)^2"

    def measure(self, m: Measured) -> None:
        d, L = self.dim, self.layers
        lam, omega = [fmpq(1, k + 1) for k in range(d)], [fmpq(k + 2, k + 1) for k in range(d)]
        weights = [x * w for x, w in zip(lam, omega, strict=True)]
        if d <= L:
            steps, moments = [1 / x for x in lam], atoms(lam, weights, 2 * d + 1)
            m.zero("least", step_risk(moments, steps), "risk of the steps 1 / lambda_k; none is negative")
            m.control("the same without the last step", step_risk(moments, steps[:-1]), of="least")
            return
        cells = [(i, j) for i in range(d) for j in range(d)]
        beside = [fmpq_mat(d, d, [fmpq((3 * i + 5 * j + k) % 7 - 3, 20) for i, j in cells]) for k in range(L)]
        gammas = [(k + 1) * identity(d) + off for k, off in enumerate(beside)]  # without symmetry
        group = list(signed_permutations(d))
        errors = rotated_errors(lam, gammas, group)
        mean = sum(errors, fmpq_mat(d, d)) / len(group)
        m.zero("degree", _beyond(lam, mean, L), "rank that the mean entries add to the powers 0 .. L")
        alone = rotated_errors(lam, gammas, [identity(d)])[0]
        m.control("the same without rotations", _beyond(lam, alone, L), of="degree")
        risk = sum((_risk(lam, omega, error) for error in errors), fmpq(0)) / len(group)
        of_mean = sum((w * mean[i, i] ** 2 for i, w in enumerate(weights)), fmpq(0))
        m.at_most("of_mean", of_mean, risk, "risk of the mean entries' polynomial, at most the mean risk")
        least = best_polynomial(atoms(lam, weights, 2 * L + 1), L)[1]
        m.at_most("least", least, of_mean, "least risk of multiples of I, at most that of the polynomial")
        inverse = rotated_errors(lam, [diagonal([1 / x for x in lam])] * L, [identity(d)])[0]
        m.control("the bound at Lambda^-1, without rotations", least - _risk(lam, omega, inverse))
        layer = sum((Q.transpose() * gammas[0] * Q for Q in group), fmpq_mat(d, d)) / len(group)
        flat = identity(d) * (trace(gammas[0]) / d)
        m.zero("layer", (layer - flat).entries(), "mean of O^T Gamma_1 O less tr(Gamma_1) I / D")
        m.control("the same without rotations", (gammas[0] - flat)[0, 1], of="layer")


def _risk(lam: list[fmpq], omega: list[fmpq], error: fmpq_mat) -> fmpq:
    return trace(diagonal(omega) * error.transpose() * diagonal(lam) * error)


def _beyond(lam: list[fmpq], error: fmpq_mat, degree: int) -> int:
    """Return 0 if a polynomial of this degree is 1 at 0 and the entry (k, k) at each lambda_k, else 1."""
    values = [fmpq(1), *(error[k, k] for k in range(len(lam)))]
    powers = [[x**power for power in range(degree + 1)] for x in (fmpq(0), *lam)]
    return matrix([*row, value] for row, value in zip(powers, values, strict=True)).rank() - degree - 1
