"""depth, Result 5: the loss under another covariance than in training."""

from dataclasses import dataclass

from flint import fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.theory.rationals import identity, matrix, trace


@dataclass
class Ood(Statement):
    layers: int = setting(3, 1, 8)
    dim: int = setting(3, 2, 6)

    paper, where, title = "depth", "Section 3.2, Result 5", "The loss under another covariance"
    law = "trained at Sigma, Gamma = L Sigma^-1; tokens and tasks of Sigma', Omega'; P = infinity"
    claim = "The loss is tr Omega' [(I - Sigma^-1 Sigma')^L]^T Sigma' (I - Sigma^-1 Sigma')^L."
    quote = '"The out-of-distribution loss is [...]" (Result 5)'
    formula = r"\mathrm{tr}\, \Omega' [(I - \Sigma^{-1} \Sigma')^L]^\top \Sigma' (I - \Sigma^{-1} \Sigma')^L"

    def measure(self, m: Measured) -> None:
        d, L, one = self.dim, self.layers, identity(self.dim)
        sigma, other, omega = (_covariance(d, k) for k in (1, 2, 3))
        gamma, left, predicted = L * sigma.inv(), one, fmpq_mat(d, d)
        for _ in range(L):  # f(x) = x^T predicted beta, layer by layer as the model is printed
            predicted += gamma * left * other / L
            left = left * (one - other * gamma / L)

        def loss(off: fmpq_mat) -> fmpq:
            return trace(omega * off.transpose() * other * off)

        found, printed = loss(one - predicted), loss((one - sigma.inv() * other) ** L)
        m.zero("difference", found - printed, "loss of the model less the formula")
        m.control("the formula with Sigma' Sigma^-1", found - loss((one - other * sigma.inv()) ** L))


def _covariance(d: int, k: int) -> fmpq_mat:
    root = matrix([[fmpq((i * i + k * j + i * j) % 5 - 2, 3 + k) for j in range(d)] for i in range(d)])
    return identity(d) + root * root.transpose()
