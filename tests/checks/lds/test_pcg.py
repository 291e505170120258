import numpy as np
import pytest
import torch

from icl.algorithms import ConjugateGradient
from icl.checks.lds.pcg import Pcg
from icl.checks.lds.support import population, sequences
from icl.checks.lds.support.pcg_distances import median_interval
from icl.checks.lds.support.pcg_layer import PcgLayer
from icl.theory import dynamical_system as theory
from icl.theory.lds.value_search import search_values
from tests.checks.asking import held


def random_layer(window=3, B=5, seed=0):
    rng = np.random.default_rng(seed)
    b, a = (
        torch.from_numpy(rng.standard_normal(window + 1)),
        torch.from_numpy(rng.standard_normal((window, window + 1))),
    )
    root = torch.from_numpy(rng.standard_normal((B, window + 1, window + 4)))
    return b, a, root @ root.mT


def test_seventeen_is_right_with_gamma_and_with_e3_and_wrong_as_printed():
    b, a, G = random_layer()
    layer = PcgLayer(b, a, G)
    right = layer.predictor()
    assert torch.allclose(right, torch.einsum("kp,bpr,r->bk", a, G, b), rtol=1e-12)
    assert torch.allclose(layer.seventeen(layer.gamma()), right, rtol=1e-10)
    assert torch.allclose(layer.seventeen(layer.e3()), right, rtol=1e-10)
    assert not torch.allclose(layer.seventeen(layer.gamma() @ layer.H_BDD), right, rtol=1e-2)
    assert int(torch.linalg.matrix_rank(layer.gamma()[0])) == 1


def test_the_expansion_is_two_steps():
    b, a, G = random_layer(2)
    layer = PcgLayer(b, a, G)
    steps = ConjugateGradient(2, layer.P_DD, layer.q_D).weights(layer.H_BDD[None], layer.g_BD[None])[0]
    assert torch.allclose(layer.expansion()[0], steps, rtol=1e-8)


def test_pcg_holds_at_the_paper_s_sizes():
    finding = held(Pcg(window=3, samples=20_000))
    measured = finding.measured
    assert measured["identity_error"] < 1e-13 and measured["printed_17_error"] > 0.01
    low, high = measured["distance_pcg_interval"]
    assert 0.1 < low < measured["distance_pcg"] < high < measured["distance_gd_interval"][0] < 1
    assert measured["risk_layer"] < measured["risk_gd"]
    assert measured["kalman_ratio_printed_2"] > 1
    assert any("does not equal them" in remark for remark in finding.remarks)


def test_the_interval_of_a_median_covers_it_whatever_the_tails():
    """Sample quotients of normal numbers, whose median is 1 in size and which have no mean; 80 % to see it
    miss."""
    rng, missed = np.random.default_rng(0), {0.2: 0, 1e-3: 0}
    for _ in range(1000):
        top, bottom = torch.from_numpy(rng.standard_normal((2, 400)))
        for alpha in missed:
            low, high = median_interval((top / bottom).abs(), alpha)
            missed[alpha] += not low <= 1 <= high
    assert 120 < missed[0.2] <= 220 and missed[1e-3] <= 5
    assert median_interval(torch.ones(4).double(), 1e-3) == [0.0, float("inf")]


def test_too_few_sequences_decide_nothing():
    finding = Pcg(setting="d", samples=320).measure()
    assert finding.verdict == "undecided" and finding.control.rejected


def test_pcg_measures_the_layer_that_the_search_found():
    law = sequences.law_of("a", 2, 10, 2, 0)
    risk = population.Population(law, 1000, 0).risk
    best = search_values(risk, 1, np.random.default_rng(0), 3, theory.parity_mask(2)[0])
    b, a = population.balance(best, 2)
    assert float(b.norm()) == pytest.approx(float(a.norm()), rel=1e-12) and float(b[-1]) > 0
    assert float(risk.value_of_heads(b[None], torch.cat([a, 0 * a[:1]])[None])) == pytest.approx(best.value)
