"""Tests that training in whitened coordinates does not depend on Sigma."""

import torch

from icl.models import SparseAB
from tests.plans import MakePlan, train_one


def test_where_sigma_is_not_the_identity_the_training_does_not_feel_it(make_plan: MakePlan) -> None:
    """Compare whitened runs of two covariances: the same weights in white coordinates, step by step."""
    found = []
    B = 0.1 * torch.eye(2).double().expand(2, 1, -1, -1)
    for eigenvalues in ([1.0, 1.0], [4.0, 0.25]):
        plan = make_plan(
            task={"eigenvalues": eigenvalues, "rotation": "none"},
            family=lambda dim: SparseAB(dim, 2, 0.0),
            train={"coordinates": "whitened", "steps": 30},
            name=str(eigenvalues),
        )
        plan.model.parametrization.initialise = lambda *_, family=plan.model.parametrization, law=plan.law: (
            family.load({"A": -0.1 * torch.linalg.inv(law.Sigma_RDD)[:, None].expand(-1, 2, -1, -1), "B": B})
        )
        record, root_R1DD = train_one(plan).record, plan.law.root_RDD[:, None]
        found.append((root_R1DD @ torch.from_numpy(record.A) @ root_R1DD, torch.from_numpy(record.B)))
    (A_white, _), (A_other, _) = found
    assert (A_white - A_white[:, :, 0, 0, None, None] * torch.eye(2)).abs().max() > 1e-4, "nothing happened"
    torch.testing.assert_close(A_other, A_white, rtol=1e-9, atol=1e-9)
