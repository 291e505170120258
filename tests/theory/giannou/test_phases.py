"""The inequalities behind Theorem 5.4's phases against the functions that they bound."""

from flint import arb, fmpq, fmpq_poly

from icl.theory.giannou import phases
from icl.theory.giannou.decrease import error_allowed


def dual(t: arb) -> arb:
    return -t - (1 - t).log()


def test_a_step_lowers_g_by_what_self_concordance_leaves():
    mu, size = fmpq(1, 10), fmpq(1, 6)
    e = phases.largest_error(mu) * arb(fmpq(35, 40)).sqrt()
    delta = size / (1 + size) + e
    assert (phases.decrease(mu, arb(size)) - (size**2 / (1 + size) - e * size - dual(delta))).contains(0)
    far = phases.decrease(mu, arb(50))  # where eps is at most .02 / lambda
    e = arb(fmpq(35, 40)).sqrt() / 2500
    assert (far - (50 * fmpq(50, 51) - 50 * e - dual(fmpq(50, 51) + e))).contains(0)
    lost = phases.decrease(fmpq(1, 10**6), arb(10**9))  # the error may take the logarithm's argument below 0
    assert lost.contains(-1) and lost.contains(1)
    assert phases.decreases_by(mu, fmpq(112, 10**4)) is True
    assert phases.decreases_by(mu, fmpq(113, 10**4)) is False


def test_the_constant_turns_an_exact_step_into_one_with_an_error():
    mu, eps, size = fmpq(1, 4), fmpq(1, 100), fmpq(1, 10)
    e = phases.local_error(mu, eps)
    assert (e**2 - eps**2 * fmpq(5, 4)).contains(0)
    left = 3 * size**2 + phases.constant_times_error(mu, eps)
    assert left > (2 * size**2 + e / (1 - e)) / (1 - e)
    # lambda = 1/6 is not enough for .6 lambda^2 <= 1e-3, 3/36 + C' eps neither, the next is
    assert phases.steps_of_phase_two(mu, fmpq(1, 1000)) == 2


def test_lemma_b4_by_its_functions():
    assert min(phases.lemma_b4()) == 0 and min(phases.above_omega(fmpq_poly([2, fmpq(6, 5)]))) < 0
    for t in (arb(1) / 10, arb(1) / 2, arb(9) / 10):
        w = t - (1 + t).log()
        assert t**2 / (2 * (1 + t)) < t**2 / (2 * (1 + 2 * t / 3)) < w < t**2 / (2 + t)
        assert t**2 / (2 - t) < dual(t) < t**2 / (2 * (1 - t))
    assert 100 - arb(101).log() > fmpq(100**2, 122)  # the bound that is too sharp


def test_the_largest_error_is_that_of_mu_one_third():
    allowed = [error_allowed(fmpq(k, 60)) for k in range(1, 600)]
    assert max(allowed) == error_allowed(fmpq(1, 3)) == allowed[19] == fmpq(1, 10000)
    assert error_allowed(fmpq(1)) == fmpq(1, 100) ** 2 * 2 / 4
