from __future__ import annotations

import pytest
import torch

from icl.checks.xie.convexity import violation


def test_the_midpoint_against_the_mean():
    one, minus_one = torch.tensor(1.0), torch.tensor(-1.0)
    assert float(violation(torch.square, (one,), (minus_one,))) == -1
    assert float(violation(lambda x: 1 - x**2, (one,), (minus_one,))) == 1
    # a product of two arguments is not convex in both
    points = (one, one), (minus_one, minus_one)
    assert float(violation(lambda a, b: (a * b - 1) ** 2, *points)) == pytest.approx(1)
    assert float(violation(lambda a, b: 3 * a - b, *points)) == 0


def test_pairs_are_kept_apart():
    first, second = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 3.0, -2.0])
    assert violation(torch.square, (first,), (second,)).tolist() == [0, -1, -4]
