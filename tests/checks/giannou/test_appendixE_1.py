import numpy as np
import pytest

from icl.checks.giannou.appendixE_1 import AppendixE1
from icl.checks.giannou.support import newton_decrease


def test_appendix_e1():
    finding = AppendixE1(200).measure()
    assert finding.verdict == "fails" and finding.control.rejected
    assert finding.measured["h_at_sixth"] == pytest.approx(-0.0046091, abs=1e-6)
    assert finding.measured["h_at_sixth_own_eps_upper"] < -0.01
    assert finding.measured["decreasing_certificate"] > 0
    assert finding.measured["largest_derivative"] == pytest.approx(-1 / 7, abs=1e-3)


def test_h_and_its_derivative_by_differences():
    x, c, z = np.array([0.3, 0.8, 2.0]), np.array([0.0, -0.05, 0.04]), np.zeros(3)
    difference = (newton_decrease.h(x + 1e-6, c, z) - newton_decrease.h(x - 1e-6, c, z)) / 2e-6
    np.testing.assert_allclose(newton_decrease.slope(x, c, z), difference, rtol=1e-6)
    with_z = (newton_decrease.h(x + 1e-6, c, z + 0.01) - newton_decrease.h(x - 1e-6, c, z + 0.01)) / 2e-6
    np.testing.assert_allclose(newton_decrease.slope(x, c, z + 0.01), with_z, rtol=1e-6)
    delta = np.sqrt(x**2 / (1 + x) ** 2 - 2 * c / (1 + x))
    s, u = x / (1 + x), 1 / (1 + x)
    G = 1 + s - 2 * (s + c) / (s * (1 + u)) * u + ((s + c) / (s * (1 + u))) ** 2 * u**3 + 2 * c
    assert (difference < 0).all() and (G > 0).all()
    D = 1 - (s + c) / (s * (1 + u)) * u**2
    np.testing.assert_allclose(u * G, D**2 - delta**2, rtol=1e-12)
    np.testing.assert_allclose(
        difference, -(x**2 + 2 * x) / (1 + x) ** 2 * (D - delta) / (1 - delta), rtol=1e-6
    )


def test_the_certificate_of_G_is_below_it_and_nears_it_with_smaller_cells():
    s, c = np.meshgrid(np.linspace(1 / 7, 1, 2001), np.linspace(-0.06, 0.06, 121), indexing="ij")
    k, u = (s + c) / (s * (2 - s)), 1 - s
    least = (1 + s - 2 * k * u + k**2 * u**3 + 2 * c).min()
    gaps = [least - newton_decrease.least_of_G(cells) for cells in (200, 400, 800)]
    assert gaps[2] > 0 and gaps[:2] == pytest.approx([2 * gaps[1], 2 * gaps[2]], rel=0.05)
