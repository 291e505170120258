from dataclasses import replace

import torch

from icl.checks.ahn import global_optimum
from icl.checks.ahn.global_optimum import GlobalOptimum
from icl.checks.ahn.support import certificate
from icl.theory import wishart
from icl.theory.ahn import equivariant_bound
from icl.theory.ahn.invariant_risk import InvariantRisk
from tests.checks.asking import Mutant, blinded, edited, seen

SMALL = {"dim": 2, "context": 10, "starts": 4}


def test_no_start_ends_lower_and_most_end_there():
    start = GlobalOptimum(**SMALL)._starts(3)
    assert start.shape == (4, 3, 2, 2) and not torch.allclose(start, start.mT)
    finding = GlobalOptimum(**SMALL).measure()
    assert finding.verdict == "undecided" and finding.control.rejected
    assert finding.measured["lowest_excess"] > finding.bound.value
    assert min(finding.measured["starts_that_end_there"].values()) > 2
    assert finding.measured["one_layer_excess"] < 1e-13
    possible = finding.measured["least_possible_excess_by_layers"]
    assert all(-0.2 < possible[depth] < finding.measured["lowest_excess"] for depth in ("2", "3"))


def worse(right, risk):
    """A point that all others are below."""
    return replace(right(risk), risk=right(risk).risk * (1 + 1e-5))


test_a_lower_bound_that_is_none_is_seen = seen(
    GlobalOptimum,
    *(
        Mutant(where, name, edited(getattr(where, name), *change), of="certificate_error")
        for where, name, change in (
            (equivariant_bound, "terms_of", ("range(1, layers + 1)", "range(1, layers)")),
            (
                equivariant_bound,
                "terms_of",
                ("range(1, degree + 1)", "range(1, min(degree, 1) + 1)"),
            ),  # no S^2
            (equivariant_bound, "_partitions", ("min(total, largest)", "min(total, 0)")),  # no traces
            (certificate, "equivariant_optimum", ("context**degree", "context ** (degree - 1)")),
            (certificate, "equivariant_optimum", ("p + q", "p + q - 1")),
            (certificate, "equivariant_optimum", ("[*under, *other]", "[*under]")),
            (equivariant_bound, "_solution", ("x - factor * y", "x + factor * y")),
            (wishart, "_recursion", ("freedom + k - 1", "freedom + k")),
            (wishart, "_recursion", ("freedom + k - 1", "freedom")),
            (wishart, "_recursion", ("2 * power", "power")),
            (wishart, "_recursion", ("k - 1 - i", "k - i")),
            (wishart, "_recursion", ("k - 1 + power", "k + power")),
            (wishart, "_recursion", ("range(1, k)", "range(2, k)")),
        )
    ),
    **SMALL,
    layers=2,
)

test_a_lower_point_refutes_it_and_a_search_that_does_not_move_shows_nothing = seen(
    GlobalOptimum,
    Mutant(InvariantRisk, "optimum", worse, of="lowest_excess"),
    blinded(global_optimum, "descend", lambda right, risk, start: start),
    **SMALL,
    layers=2,
)
