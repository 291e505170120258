"""Settings at which every check of looped holds or fails, and mutants that must turn its verdict."""

from fractions import Fraction

import numpy as np
import pytest

from icl.checks.looped.flow_finds_it import FlowFindsIt
from icl.checks.looped.gain import Gain
from icl.checks.looped.loops_beyond_training import LoopsBeyondTraining
from icl.checks.looped.minimiser_symmetric import MinimiserSymmetric
from icl.checks.looped.sandwich import Sandwich, needed_context
from icl.checks.looped.scalar_is_saddle import ScalarIsSaddle
from icl.checks.looped.separate_layers import SeparateLayers
from icl.checks.looped.shift import Shift
from icl.checks.looped.support import rotations, tokens, witness
from icl.checks.looped.symmetric_optimum_is_scalar import SymmetricOptimumIsScalar
from icl.errors import InputError
from icl.theory import two_layer_certificate
from icl.theory.looped.equal_steps import EqualSteps, antisymmetric
from icl.theory.looped.plane import PlaneRisk
from tests.checks.asking import Case, Holds, Mutant, Mutants, mutants_test, settings_test

SMALL = {"draws": 200_000}
ILL = {"covariance": [[1.0, 0.999], [0.999, 1.0]]}


def exact_witness(check, finding):
    """Find the witness's risk again from its printed entries, and that of the note at its setting."""
    measured = finding.measured
    (a, minus_b), (b, _) = ([Fraction(x) for x in row] for row in measured["witness"])
    risk = Fraction(int(measured["witness_numerator"]), int(measured["witness_denominator"]))
    assert b == -minus_b != 0 and PlaneRisk(check.context, check.layers).exact(a, b) == risk
    assert risk < Fraction(measured["scalar_risk"]) and measured["real_roots"] == 0
    if (check.context, check.layers) == (20, 2):
        assert risk <= Fraction(1516075440567119117, 20000000000000000000) + Fraction(1, 10**8)


def symmetric_rotation(right, self, a, b=0, h=0):
    """Return the risk with a symmetric matrix in the place of J."""
    return right(self, a, h, b)


def dropped_power(right, self, a, b=0, h=0):
    return right(PlaneRisk(self.context, self.layers - 1), a, b, h)


def transposed(right, A_DD, law, layers, path="tokens"):
    return right(np.transpose(A_DD), law, layers, path)


def one_loop_fewer(right, A_DD, law, layers, path="tokens"):
    return right(A_DD, law, layers - 1, path)


def least_of_equal(self):
    return Fraction(self.least_risk)


WIDER = [{"dim": 5, "layers": 3, "context": 50}, {"dim": 3, "context": 50}, {"dim": 10, "context": 50}]
NO_GAIN = [{"dim": 1}, {"layers": 1}, {"layers": 2, "context": 14}, {"layers": 2, "context": 2}]
SADDLES = [
    {},
    {"layers": 6, "context": 1000},
    {"dim": 5, "layers": 4},
    {"dim": 10, "context": 50, "layers": 4},
]
MINIMA = [{"context": 14}, {"dim": 5, "layers": 3}, {"layers": 1}, {"context": 2, "dim": 5}]
CASES = {
    MinimiserSymmetric: Case(
        Holds(
            {"layers": 2},
            {"layers": 3},
            {"layers": 3, "context": 14},  # the scalar point is a local minimum, and not the least
            {"layers": 2, "context": 15},
            {"layers": 6, "context": 1000},
            {"layers": 4, "context": 100, **ILL},
            verdict="fails",
            of="witness_excess",
            also=exact_witness,
        ),
        Holds({"dim": 5, "layers": 3, "context": 50}, verdict="fails", of="witness_excess", **SMALL),
        Holds({"dim": 1, "layers": 4}, {"layers": 1}, {"dim": 3, "layers": 1}, {"context": 14}),
        Holds({"context": 3}),
        Holds({"layers": 3, "context": 3}, {"context": 1, "layers": 4}, verdict="undecided"),
        Mutants(
            Mutant(PlaneRisk, "exact", symmetric_rotation, "undecided", "witness_excess"),
            Mutant(PlaneRisk, "exact", dropped_power, "undecided", "witness_excess"),
            Mutant(tokens, "model_of", transposed, "undecided", "paths_error"),
            layers=4,
        ),
    ),
    Gain: Case(
        Holds({"layers": 2}, {"layers": 4, "context": 100}, {"layers": 4, **ILL}, of="gain"),
        Holds(*WIDER, **SMALL),
        Holds(*NO_GAIN, verdict="fails"),
        Mutants(
            Mutant(PlaneRisk, "exact", symmetric_rotation, "undecided", "gain"),
            Mutant(PlaneRisk, "exact", dropped_power, "undecided", "gain"),
            Mutant(tokens, "model_of", transposed, "undecided", "paths_error"),
            Mutant(tokens, "model_of", one_loop_fewer, "undecided", "paths_error"),
        ),
    ),
    ScalarIsSaddle: Case(
        Holds(*SADDLES, most=20),
        Holds(*MINIMA, verdict="fails", most=16),
        Mutants(
            Mutant(EqualSteps, "antisymmetric_curvature", EqualSteps.symmetric_curvature),
            most=16,
        ),
    ),
    SymmetricOptimumIsScalar: Case(
        Holds({}, {"context": 1, "layers": 3}, {"context": 2, "layers": 8}, {"context": 1000, "layers": 6}),
        Holds({"dim": 3, "layers": 3}, {"dim": 5, "context": 3, "layers": 2}, verdict="undecided", **SMALL),
        Mutants(
            Mutant(PlaneRisk, "coefficient", lambda right, self, j, k: right(self, k, j), "undecided"),
            context=20,
        ),
    ),
    FlowFindsIt: Case(
        Holds({}, {"context": 100, "seed": 2}, starts=2, steps_taken=600),
    ),
    SeparateLayers: Case(
        Holds({}, {"dim": 3, "context": 5}, {"dim": 1}, {"dim": 2, **ILL}, starts=2),
        Holds({"layers": 3}, {"layers": 4, "context": 3}, starts=2, verdict="undecided"),
        Mutants(
            Mutant(EqualSteps, "separate_risk", property(least_of_equal), "undecided", "control"),
            starts=2,
            layers=3,
        ),
        Mutants(
            Mutant(
                two_layer_certificate,
                "_kinds",
                lambda right, *of: right(*of)[:2],
                "undecided",
                "squares_error",
            ),
            starts=2,
        ),
    ),
    LoopsBeyondTraining: Case(
        Holds({}, {"layers": 2, "most": 4}, {"layers": 3, "context": 100}),
        Holds({"layers": 2, "most": 8}, verdict="fails"),
    ),
    Shift: Case(
        Holds({}, {"context": 100}, {"scales": [0.7, 1.3]}),
        Holds({"scales": [2.0]}, {"stretches": [10.0]}, verdict="fails"),
    ),
    Sandwich: Case(
        Holds({}, {"dim": 1, "layers": 8}, {"dim": 2, "context": 10**6}, verdict="fails", of="c"),
        Holds({"context": needed_context(5, 2) + 1}),
    ),
}  # fmt: skip

test_every_check_at_its_settings = settings_test(CASES)
test_every_mutant_is_seen = mutants_test(CASES)


def test_the_gains_of_the_note_are_found_again():
    """Compare with numbers computed outside this code."""
    exact = {(20, 2): 0.0028, (20, 3): 0.0588, (100, 4): 0.4762}
    for (n, L), gain in exact.items():
        measured = Gain(2, n, L).measure().measured
        assert round(measured["gain"], 4) == gain and measured["gain_stderr"] == 0
    sampled = Gain(10, 50, 4, seed=1).measure().measured
    assert (
        abs(sampled["gain"] - 0.1705) < 0.0012 + 4 * sampled["gain_stderr"] + 0.01
    )  # at another optimum found
    assert needed_context(5, 2) == pytest.approx(2.7e12, rel=0.02)


@pytest.mark.parametrize(("d", "n", "L"), [(2, 20, 4), (5, 20, 4)])
def test_the_best_risk_is_the_mean_loss_on_drawn_tokens(d, n, L):
    """Compare with the squared errors of the model itself, of tokens of a Sigma that is not I, paired."""
    check = Gain(d, n, L, eigenvalues=[2.0, 0.25, *[1.0] * (d - 2)])
    found = rotations.best_rotation(check.steps, 0, 400_000)
    prompt = check.law.gram_prompts([rotations.generator(0, "eval")], 300_000)
    scalar_DD = check.steps.best * np.eye(d)
    losses = [
        (tokens.model_of(A_DD, check.law, L, "gram").predict(prompt) - prompt.target_RB)[0].square()
        for A_DD in (scalar_DD, found.A_DD)
    ]
    lower_B = losses[0] - losses[1]
    error = float(lower_B.mean()) - (check.steps.least_risk - found.risk)
    half_width = found.half_width * check.steps.least_risk
    assert abs(error) < 4 * float(lower_B.std()) / 300_000**0.5 + half_width


def test_training_decides_nothing_where_the_rotation_gains_nothing():
    finding = FlowFindsIt(2, 14, 2, starts=1, steps_taken=300).measure()
    assert finding.verdict == "undecided" and not finding.control.rejected
    noisy = finding.measured
    assert noisy["rotation_on_batches"] > 0 == noisy["rotation_on_batches_at_first"]


def test_training_that_is_too_short_decides_nothing():
    assert FlowFindsIt(starts=1, steps_taken=50).measure().verdict == "undecided"


def test_whitening_makes_every_sigma_equivalent():
    plain, ill = Gain(2, 20, 3).measure(), Gain(2, 20, 3, **ILL).measure()
    for name in ("gain", "best_risk", "scalar_risk"):
        assert plain.measured[name] == ill.measured[name]
    assert plain.measured["paths_error"] != ill.measured["paths_error"] > 0


def test_a_witness_that_is_too_coarse_is_refined_and_a_false_one_is_none():
    plane = PlaneRisk(15, 2)
    found = rotations.best_rotation(EqualSteps(2, 15, 2), 0)
    near = witness.witness_near(plane, found.a, float(found.b[0]))
    assert near.below_symmetric and near.roots == 0
    scalar = witness.witness_at(plane, Fraction(found.a).limit_denominator(100), Fraction(0))
    assert not scalar.below_symmetric and scalar.roots > 0
    assert not witness.witness_at(PlaneRisk(14, 2), Fraction(77, 100), Fraction(1, 10)).below_symmetric


def test_settings_without_an_exact_risk_are_refused():
    for check, given, words in (
        (SeparateLayers, {"dim": 3, "layers": 4}, "check.layers=4"),
        (FlowFindsIt, {"dim": 3}, "check.dim"),
        (ScalarIsSaddle, {"dim": 1}, "check.dim"),
        (Gain, {"layers": 9}, "check.layers=9"),
        (Gain, {"dim": 0}, "check.dim"),
    ):
        with pytest.raises(InputError, match=words):
            check(**given)


def test_the_direct_sum_of_blocks_is_every_antisymmetric_matrix_up_to_a_rotation():
    K_DD = antisymmetric(5, [0.3, 0.1])
    assert np.array_equal(K_DD, -K_DD.T)
    assert np.allclose(np.sort(np.abs(np.linalg.eigvals(K_DD).imag)), [0, 0.1, 0.1, 0.3, 0.3])
