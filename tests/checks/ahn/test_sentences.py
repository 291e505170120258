"""Settings of the checks of sentences, which tests/checks/ahn/test_cases.py runs, and what they refuse."""

import pytest
import torch

from icl.checks.ahn import flow_on_s, nonconvex, scaling_factor, shrinkage, trace_term
from icl.checks.ahn.flow_on_s import FlowOnS
from icl.checks.ahn.newton import Newton
from icl.checks.ahn.nonconvex import Nonconvex
from icl.checks.ahn.rate import Rate
from icl.checks.ahn.scaling_factor import ScalingFactor
from icl.checks.ahn.shrinkage import Shrinkage
from icl.checks.ahn.trace_term import TraceTerm
from icl.errors import InputError
from tests.checks.asking import Case, Holds, Mutant, Mutants, blinded, edited

ILL = {"dim": 3, "eigenvalues": [1e4, 1, 1e-2], "context": 4, "seed": 2}


def halved(right, *given):
    return right(*given) / 2


def of_variance(right, Sigma, context, *given):
    """Eq. (6) with the squared trace, which has another unit."""
    D = len(Sigma)
    return torch.linalg.inv(
        (context + 1) / context * Sigma + Sigma.trace() ** 2 / context * torch.eye(D).double()
    )


def limit(right, A_LDD, Sigma, Sigma_w, context):
    """Return the risk of one layer at an infinite context, less a constant factor."""
    return (A_LDD[0] @ Sigma - torch.eye(len(Sigma)).double()).square().sum()


SENTENCES = {
    Nonconvex: Case(
        Holds(
            {}, {"dim": 1, "context": 1}, ILL, {"dim": 8, "context": 2},
            {"covariance": [[2, 1], [1, 1]], "dim": 2},
        ),
        Mutants(
            Mutant(nonconvex, "theorem1_risk", halved, of="violation_error"),
            Mutant(nonconvex, "theorem1_preconditioner", halved, of="violation_error"),
            blinded(Nonconvex, "_in_one_alone", lambda *_: 1.0),
        ),
    ),
    ScalingFactor: Case(
        Holds(
            {}, {"dim": 1, "context": 2, "layers": 1}, ILL | {"layers": 4},
            {"dim": 8, "context": 3, "layers": 2},
        ),
        Mutants(
            Mutant(scaling_factor, "stack_forward", lambda right, *given: right(*given, mask=False)),
            Mutant(scaling_factor, "_layers_without_factor", lambda right, P, Q, z: right(P, Q.mT, z)),
            blinded(scaling_factor, "_carried", lambda right, *given: 1e12 * right(*given)),
        ),
    ),
    TraceTerm: Case(
        Holds({}, {"dim": 1, "context": 1}, ILL, {"dim": 2, "context": 1000}, verdict="fails"),
        Mutants(
            Mutant(trace_term, "theorem1_preconditioner", of_variance, verdict="holds"),
            blinded(TraceTerm, "_growth", lambda *_: (0.0, 0.0)),
        ),
    ),
    Rate: Case(
        Holds({}, {"dim": 2, "context": 1}, {"dim": 9, "context": 5, "conditions": [2, 10**4]}),
        Mutants(
            Mutant(Rate, "_factor", edited(Rate._factor, "inverse if", "Sigma if")),
            Mutant(Rate, "_factor", edited(Rate._factor, "(4 *", "(5 *"), of="factor_error"),
            blinded(
                Rate, "_factor", lambda right, check, kappa, white, *risk: 0.5 if white else 0.8 + 0.1 / kappa
            ),
        ),
    ),
    Shrinkage: Case(
        Holds({}, {"dim": 1, "context": 1}, ILL, {"dim": 2, "context": 10**6}, verdict="fails"),
        Mutants(
            Mutant(shrinkage, "sparse_a_risk", limit, verdict="holds"),
        ),
    ),
    Newton: Case(
        Holds({}, {"dim": 1, "context": 1}, {"dim": 4, "context": 4}, ILL),
        Mutants(
            Mutant(Newton, "_error", lambda right, check, prompt, A: right(check, prompt, 1.001 * A)),


            blinded(Newton, "_error", lambda right, check, prompt, A: torch.zeros(64).double()),
        ),
    ),
    FlowOnS: Case(
        Holds({}, {"dim": 2, "context": 1, "layers": 1}, {"layers": 3}, ILL),
        Mutants(
            Mutant(flow_on_s, "sparse_a_risk", lambda right, A, S, W, n: right(A, S, W @ W, n)),
            Mutant(FlowOnS, "measure", edited(FlowOnS.measure, "Sigma) / D", "Sigma)")),
            blinded(FlowOnS, "measure", edited(FlowOnS.measure, "0.5 * on_S", "0.0 * on_S")),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Newton(dim=5, context=4), r"check\.context=4: must be at least check\.dim=5"),
        (lambda: Rate(conditions=[4, 2]), "must be in rising order"),
        (lambda: Rate(conditions=[4, 10**6]), r"check\.conditions"),
        (lambda: Rate(conditions=[]), "must be a list"),
        (lambda: FlowOnS(dim=1), r"check\.dim=1"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_numbers_of_the_closed_forms():
    """Compare with closed forms by hand: the trace term's share grows by (2 n + 1)/(n + 1) from 2 n tokens to
    n, and the best scalar is n/(n + d + 1)."""
    assert TraceTerm().measure().control.measured == pytest.approx(41 / 21 - 1)
    assert Shrinkage().measure().measured["best"] == pytest.approx(20 / 26)
    assert Nonconvex().measure().measured["violation_in_one_alone"] < 0
