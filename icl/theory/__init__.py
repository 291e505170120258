"""Exact expectations and optima over random prompts. Imports nothing else of icl, and no torch.

What is public stands in docs/vocabulary.md, with cost and range; it is imported from here.

wishart                       moments of Wishart traces
quadrature                    Gauss rule of a measure known by exact moments
plane_rule                    Gauss rule of the sample covariance of two covariates
closed_forms                  one layer at Sigma = I: ahn's eq. (7) and its risk

What serves one paper alone lies below its name:
ahn.invariant_risk            many layers on the sets S of Theorems 3 and 4
ahn.critical_set              the same in rationals, and a prompt's gradients off S
ahn.minima                    local minima on S of Theorem 4, proved in balls
ahn.equivariant_bound         a lower bound over all A of eq. (8)
ahn.two_layer_certificate     a sum of squares: no two layers are below the best of S
ahn.forward                   a forward pass on one prompt, eqs. (3) and (4)
ahn.relu_layer                one layer of ReLU attention, Theorem 5
lds.systems                   laws of the observations of random linear systems
lds.layer                     the risk of one layer on AR(s) tokens
lds.heads                     searches for single heads, and proofs that none is below a level
lds.kalman                    the steady state of a system's Kalman filter
giannou.scalar_family         the exact risk of scalar weights without a mask
looped.plane                  one layer applied L times in two dimensions, in rationals
looped.equal_steps            the same at a multiple of I, and its curvatures, in any dimension
lu.limits                     pretraining in the limit of many covariates, on new tasks and on old ones
lu.leave_one_out              pretraining's error to the order 1/d, a new task in every prompt
lu.finite                     its exact risk at any size, and the best of infinitely many prompts
"""

from icl.theory.calculus import counterexample, flow, gradient, hessian, limit, minimise
from icl.theory.formula import Formula
from icl.theory.laws import Law, gaussian, layer_risk, least_risk, moment, optimum, risk, sampled_risk
from icl.theory.marchenko_pastur import eigenvalue_density
from icl.theory.prompts import Prompt, descent, draw_prompt, forward, least_squares, newton, ridge
from icl.theory.rationals import diagonal, identity, matrix, rational

__all__ = [
    "Formula", "Law", "Prompt", "counterexample", "descent", "diagonal", "draw_prompt", "eigenvalue_density",
    "flow", "forward", "gaussian", "gradient", "hessian", "identity", "layer_risk", "least_risk",
    "least_squares", "limit", "matrix", "minimise", "moment", "newton", "optimum", "rational", "ridge",
    "risk", "sampled_risk",
]  # fmt: skip
