"""Tests of depth's theory against tokens in rationals, torch, brute sums and polynomials in rationals."""

import numpy as np
import pytest
from flint import arb, fmpq

import icl
from icl.theory.calculus import gradient
from icl.theory.depth.flow import Spectrum
from icl.theory.depth.power_law import PowerLaw
from icl.theory.depth.steps import risk, shared, wishart
from icl.theory.rationals import identity, rational
from icl.theory.wishart import best_polynomial
from icl.theory.words import stack_risk

STEPS = [fmpq(1, 2), fmpq(2, 3), fmpq(-1, 4)]
LAWS = [(1.2, 1.5), (1.5, 0.75), (2.0, 3.0)]


@pytest.mark.parametrize(("dim", "context"), [(1, 1), (2, 3), (3, 2)])
def test_a_risk_is_that_of_words_and_of_torch(dim, context):
    exact = dim * risk(wishart(dim, context, 7), STEPS)
    assert exact == stack_risk([g * identity(dim) for g in STEPS], context)
    P, Q = np.zeros((2, 3, dim + 1, dim + 1))
    P[:, -1, -1] = 1
    for layer, g in enumerate(STEPS):
        Q[layer, :dim, :dim] = -float(arb(g)) * np.eye(dim)
    assert icl.exact_risk(P, Q, context=context, covariance="identity") == pytest.approx(float(arb(exact)))


@pytest.mark.parametrize(("nu", "beta"), LAWS)
def test_balls_hold_the_sums(nu, beta):
    law, k = PowerLaw.at(nu, beta), np.arange(1.0, 400_001)
    weight, lam = k ** (-nu * beta - 1), k**-nu
    for x in (20.0, 300.0):
        for power in (0, 1):
            found = law.exponential(arb(x), power) - float((weight * lam**power * np.exp(-x * lam)).sum())
            assert abs(found).abs_lower() < 1e-6
        assert abs(law.fixed(arb(x)) - float((weight / (1 + x * weight * lam**2)).sum())).abs_lower() < 1e-6
    endless, ball = Spectrum.endless(nu, beta), law.shared(arb(2000))
    assert abs(ball / endless.best_shared(2000)[1] - 1).abs_lower() < 1e-6
    assert float(law.summed(law.steps(9), 500).mid()) == pytest.approx(
        float(endless.risk(np.array([float(g) for g in law.steps(9)]))), rel=0.05
    )
    for L in (8, 40):
        assert (
            endless.least_separate(L)[L]
            < law.separate_bound(L)
            < law.separate_constant / L ** (beta * (2 + nu))
        )


@pytest.mark.parametrize(("nu", "beta"), LAWS)
def test_least_risks_and_slopes_are_those_in_rationals(nu, beta):
    spectrum = Spectrum.power(nu, beta, 12)
    moments = spectrum.moments(20)
    least = [float(arb(best_polynomial(moments, L)[1])) for L in range(1, 6)]
    assert spectrum.least_separate(5)[1:].tolist() == pytest.approx(least, rel=1e-8)
    g = np.array([float(arb(x)) for x in STEPS])
    exact = gradient(lambda *steps: risk(moments, steps), [rational(float(x)) for x in g])
    assert spectrum.slope(g).tolist() == pytest.approx([float(arb(x)) for x in exact])
    best, at = spectrum.best_shared(4)
    assert at == pytest.approx(float(arb(shared(moments, 4)(rational(best)))), rel=1e-9)
    assert abs(float(arb(shared(moments, 4).derivative()(rational(best))))) < 1e-4 * at
