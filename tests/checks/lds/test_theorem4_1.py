import pytest
import torch

from icl.algorithms import GradientDescent
from icl.checks.lds.support import eq14, eq14_optimality, population, sequences
from icl.checks.lds.support.eq14 import constant
from icl.checks.lds.theorem4_1 import Theorem41
from icl.checks.verdict import Weights
from icl.errors import InputError
from icl.random import generator
from icl.tasks import LinearRegression
from icl.tasks import dynamical_system as task
from icl.theory import dynamical_system as theory
from tests.checks.asking import elsewhere, held, refuses

SMALL = {"dim": 2, "length": 8, "samples": 1200}


def test_the_paper_sizes():
    finding = held(Theorem41(samples=1000))
    measured = finding.measured
    assert measured["constant"] == pytest.approx(1.7013627, rel=1e-7)
    assert measured["optimal_risk"] == pytest.approx(0.06048354, rel=1e-6)
    assert measured["zero_risk"] == pytest.approx(0.07246926, rel=1e-6)
    assert measured["gradient_norm"] < 1e-15
    assert any("both of which are zero" in remark for remark in finding.remarks)


@pytest.mark.parametrize(
    ("settings", "exact"),
    [
        *(({}, True), ({"setting": "b"}, True), ({"dim": 1}, True), ({"length": 3}, True)),
        *(({"setting": "c"}, False), ({"setting": "d"}, False)),
        *(({"spectrum": "sphere"}, False), ({"spectrum": [0.9, -0.4], "setting": "d"}, False)),
        *(({"spectrum": [0.9, -0.4], "setting": s}, True) for s in "ab"),
    ],
)
def test_holds_exactly_in_a_and_b_and_within_intervals_elsewhere(settings, exact):
    measured = held(Theorem41(**(SMALL | settings))).measured
    assert ("constant_stderr" not in measured) == exact
    assert not exact or measured["risk_at_claim"] == pytest.approx(measured["optimal_risk"], rel=1e-9)


@pytest.mark.parametrize("setting", ["a", "b", "c"])
def test_without_memory_the_constant_is_zero(setting):
    """Set A = 0: every number is one, and the control is rejected."""
    finding = held(Theorem41(setting=setting, spectrum=[0.0, 0.0], **SMALL))
    assert finding.measured["constant"] == 0 and finding.measured["gd_error"] < 1e-14
    assert any("every layer with W_QK = 0" in remark for remark in finding.remarks)


def test_the_control_is_of_the_spectrum_that_is_asked():
    spectra = ["sphere", "ball", [0.9, -0.4], [0.5, 0.5]]
    controls = [Theorem41(spectrum=one, **SMALL).measure().control.measured for one in spectra]
    assert len(set(controls)) == len(spectra)


def test_the_longest_length_is_a_length_that_was_asked_for():
    assert Theorem41(length=200, dim=1).longer.length == 201
    with pytest.raises(InputError, match=r"check.length=201: must be from 1 to 200"):
        Theorem41(length=201)


def test_the_jackknife_of_the_constant_covers_the_exact_one():
    """Average setting (a) as if it were (c)."""
    law = sequences.law_of("a", 1, 8, 3, 0)
    exact = constant(population.Population(law, 1000, 0).moments)
    sampled = population.Population(sequences.law_of("a", 1, 8, 3, 0), 8000, 1)
    rng = generator(1, "check")
    sampled.exact = False
    sampled.parts = [population.mean_over(population.covariances_of(law, rng, 250)) for _ in range(32)]
    error = sampled.stderr(constant)
    assert error > 0 and abs(constant(sampled.moments) - exact) < 4.5 * error


def test_one_step_of_descent_is_the_library_s():
    law = sequences.law_of("a", 1, 9, 3, 0)
    prompt = law.token_prompts([generator(0, "check")], 7)
    step = GradientDescent(0.7, 1).predict(prompt)[0]
    assert torch.allclose(eq14.predictions(prompt, 0.7), step, rtol=1e-12)


@pytest.mark.parametrize("last", [True, False])
def test_either_mirror_image_is_14_and_without_the_swap_one_is_not(monkeypatch, last):
    """End the search at b = e_2, or mirrored at b = e_1."""
    free_P, honest = torch.tensor([not last, last]), eq14_optimality.search_values
    monkeypatch.setattr(
        eq14_optimality, "search_values", lambda *given, **more: honest(*given, **more, free_P=free_P)
    )
    assert Theorem41(**SMALL).measure().verdict == "holds"
    monkeypatch.setattr(eq14, "canonical", lambda b_P, a_KP: (b_P, a_KP))
    finding = Theorem41(**SMALL).measure()
    assert finding.verdict == ("holds" if last else "fails")
    assert last or finding.bound.of == "best_head_error"


def weights_of(setting, *points, window=1, **task_settings):
    """Return weights b, a_1 of each seed as a run has them: P = W_V^T, Q = W_QK^T."""
    seeds = list(range(len(points)))
    law = task.DynamicalSystem(2, 8, window, setting, **task_settings).law(seeds)
    P, Q = torch.zeros(2, len(points), 1, window + 1, window + 1, dtype=torch.float64)
    for r, (b, a) in enumerate(points):
        P[r, 0, -1], Q[r, 0, :, 0] = torch.tensor([b, a], dtype=torch.float64)
    return Weights("full", {"P": P, "Q": Q}, law)


def constant_of(setting, **task_settings):
    law = task.DynamicalSystem(2, 8, 1, setting, **task_settings).law([0])
    return constant(theory.moments(law.covariances, 1))


@pytest.mark.parametrize(("setting", "more"), [("a", {}), ("b", {}), ("c", {"systems": 30})])
def test_trained_weights_are_14_up_to_scale_and_mirror(setting, more):
    c = constant_of(setting, **more)
    right, mirrored = ([0.0, 2.0], [c / 2, 0.0]), ([c, 0.0], [0.0, 1.0])
    finding = held(Theorem41(**SMALL), weights_of(setting, right, mirrored, **more))
    assert finding.measured["distance"] < 1e-12 and finding.measured["weight_by_seed"] == pytest.approx(
        [c] * 2
    )
    for off in (([0.0, 2.0], [0.55 * c, 0.0]), ([0.4, 2.0], [c / 2, 0.1 * c]), ([0.0, 0.0], [c, 0.0])):
        elsewhere(Theorem41(**SMALL).judge(weights_of(setting, right, off, **more)))


def test_of_fresh_systems_the_risk_of_trained_weights_has_an_interval():
    """Compare with the constant of the check's own systems."""
    check = Theorem41(setting="d", **SMALL)
    c = constant(population.Population(check.law, SMALL["samples"], 0).moments)
    judged = check.judge(weights_of("d", ([0.0, 1.0], [c, 0.0])))
    assert judged.verdict == "holds" and judged.measured["distance"] < 1e-12
    assert judged.measured["risk_excess_error_by_seed"][0] > 0
    elsewhere(check.judge(weights_of("d", ([0.0, 1.0], [3 * c, 0.0]))))


def test_weights_that_the_theorem_does_not_speak_of_are_refused():
    good = weights_of("a", ([0.0, 1.0], [1.0, 0.0]))
    two = {name: M.expand(-1, 2, -1, -1) for name, M in good.matrices.items()}
    of_lds = "of a dynamical system"
    refuses(
        Theorem41(**SMALL),
        (weights_of("a", ([0.0, 0, 1], [1.0, 0, 0]), window=2), f"tokens {of_lds}"),
        (Weights("full", good.matrices, LinearRegression(1, 6).law([0])), of_lds),
        (Weights("full", two, good.law), "one layer"),
    )
