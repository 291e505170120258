"""giannou, Lemma 4.1: two linear attention layers are one step X1 = X0 (2 I - A X0), for any A and X0.

The proof's layers read A from block 2; the statement stores A^T there. One layer reads A^T transposed back.
B samples, D covariates, M = D columns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.checks.giannou.support.mutants import least_wrong, mutants, or_infinite
from icl.checks.giannou.support.problems import MAX_DIM, condition_of, conditioned
from icl.checks.rounding import along_a_path
from icl.checks.settings import in_range
from icl.checks.verdict import Finding, at_most, combine, decide
from icl.constructions.giannou import inversion
from icl.constructions.giannou.describe import describe
from icl.errors import whole
from icl.models.giannou.columns import ColumnStack
from icl.random import generator

REMARKS = [
    "The statement has A^T in the second block, the proof's two layers use A: run on A^T they take the "
    "step for A^T. With A^T stored one layer with two heads suffices for any A, symmetric or not, as the "
    "key is read transposed: -X (A^T)^T X + X. The second layer, and block 3, are needed only where A "
    "itself is stored.",
]


class Lemma4_1:
    """Settings: dimension, condition of A, number of random A and X0 (`samples`), their seed."""

    reference = "Lemma 4.1; Appendix A.1"
    claim = (
        "Two linear attention layers of two heads and width 4d take one step of Newton's iteration for any A."
    )

    def __init__(self, dim: int = 5, condition: float = 100.0, seed: int = 0, samples: int = 32) -> None:
        self.dim = in_range("check.dim", dim, 1, MAX_DIM, "the random problems take minutes")
        self.condition = condition_of(condition, 1e12)
        self.seed, self.samples = whole("check.seed", seed, 0), whole("check.samples", samples, 1, 10_000)

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        A_BDD = conditioned(rng, self.dim, self.dim, self.condition, self.samples)
        X_BDD = torch.from_numpy(rng.standard_normal(A_BDD.shape))
        two, one = inversion.lemma4_1(self.dim), inversion.lemma4_1_one_layer(self.dim)
        S_BDD = (A_BDD + A_BDD.mT) / 2
        errors = {
            "error_two_layers": _error(two, X_BDD, A_BDD, A_BDD),
            "error_one_layer_transpose_stored": _error(one, X_BDD, A_BDD.mT, A_BDD),
            "error_one_layer_symmetric": _error(one, X_BDD, S_BDD, S_BDD),
        }
        bound = along_a_path(2 * (4 * two.width + self.dim) + 2 * self.dim + 4)
        wrong = {}
        for number, name, layer in mutants(two):
            layers = [*two.layers[:number], layer, *two.layers[number + 1 :]]
            wrong[name] = _error(ColumnStack(two.rows, layers), X_BDD, A_BDD, A_BDD)
        as_stated = _error(two, X_BDD, A_BDD.mT, A_BDD)
        if self.dim > 1:
            wrong["A^T stored for the two layers"] = as_stated
        max_error = max(errors.values())
        sizes_off = int((len(two.layers), two.heads, two.width, len(one.layers)) != (2, 2, 4 * self.dim, 1))
        verdict, shown = combine(
            [
                (decide(max_error, bound.value), bound),
                at_most("sizes_off", sizes_off, 0.5, "the claim: 2 layers, 2 heads, width 4 d; one layer"),
            ]
        )
        return Finding(
            verdict,
            {
                "max_error": max_error,
                **errors,
                "error_two_layers_transpose_stored": as_stated,
                "layers": len(two.layers),
                "heads": two.heads,
                "width": two.width,
                "layers_transpose_stored": len(one.layers),
                "sizes_off": sizes_off,
            },
            shown,
            least_wrong("error of a wrong stack", wrong, bound.value),
            remarks=REMARKS,
            details=describe(
                two,
                "Two layers, A in the block A, as the proof has it",
                describe(one, "One layer, A^T in the block A, as the statement has it"),
            ),
            kinds={"*error*": "tried"},
        )


def _error(stack: ColumnStack, X_BDD: Tensor, stored_BDD: Tensor, A_BDD: Tensor) -> float:
    """Of every block after the stack, as a share of the sizes of each entry's terms."""
    H_BPM = inversion.prompt_of_lemma(stack, X_BDD, stored_BDD)
    expected_BPM, sizes_BPM = H_BPM.clone(), torch.ones_like(H_BPM)
    expected_BPM[:, stack.rows["X"]] = 2 * X_BDD - X_BDD @ (A_BDD @ X_BDD)
    sizes_BPM[:, stack.rows["X"]] = 2 * X_BDD.abs() + X_BDD.abs() @ A_BDD.abs() @ X_BDD.abs()
    return or_infinite(float(((stack(H_BPM) - expected_BPM).abs() / sizes_BPM).max()))
