"""Exact expectations and optima over random prompts. Imports nothing else of icl.

gaussian, wishart             moments of Gaussian vectors, of Wishart traces
expected_traces               traces of words in a sample covariance, the risk of eq. (8) to three layers
quadrature                    Gauss rule of a measure known by exact moments
plane_rule                    Gauss rule of the sample covariance of two covariates
quadratic                     one layer: the risk as a quadratic form, its minimum, its best with H heads
closed_forms                  one layer: ahn's Theorem 1 and eq. (7)
dynamical_system              moments of random linear dynamical systems, the risk on AR(s) tokens
logistic                      regularised logistic loss, its minimum by damped Newton or descent
distance                      Dist(M, I) of ahn's figures, symmetric roots
statistics                    the norm of an expected gradient, and its standard error

What serves one paper alone lies below its name:
ahn.invariant_risk            many layers on the sets S of Theorems 3 and 4
ahn.equivariant_bound         a lower bound over all A of eq. (8)
ahn.relu_risk                 one layer of ReLU attention, Theorem 5
xie.initial_guess             saturation by heads, the gap of a prior mean
lds.value_search              one layer: the best risk with H heads by a search over their values
giannou.scalar_family         the exact risk of scalar weights without a mask
looped.plane                  one layer applied L times in two dimensions, in rationals
looped.equal_steps            the same at a multiple of I, and its curvatures, in any dimension
lu.limits                     pretraining in the limit of many covariates, on new tasks and on old ones
lu.leave_one_out              pretraining's error to the order 1/d, a new task in every prompt
lu.finite                     its exact risk at any size, and the best of infinitely many prompts
"""
