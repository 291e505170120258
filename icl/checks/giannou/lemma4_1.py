"""giannou, Lemma 4.1: two linear attention layers are one step X1 = X0 (2 I - A X0), for any A and X0.

The proof's layers read A from block 2; the statement stores A^T there. One layer reads A^T transposed back.
B samples, D covariates, M = D columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.giannou.support.mutants import least_wrong, mutants, or_infinite, with_layer
from icl.checks.giannou.support.problems import MAX_DIM, TOO_LONG, draw_designs, validate_condition
from icl.checks.numbers import exact, finding, tried
from icl.checks.rounding import PATH, path_rounding
from icl.checks.settings import integer, validate
from icl.checks.verdict import Finding
from icl.constructions.giannou import inversion
from icl.constructions.giannou.describe import describe
from icl.models.giannou.columns import ColumnStack
from icl.random import generator

REMARKS = [
    "The statement stores A^T in the second block, but the two layers of the proof use A: applied to A^T "
    "they take the step for A^T. If A^T is stored, one layer with two heads suffices for every A, because "
    "the key is read transposed: -X (A^T)^T X + X. The second layer and block 3 are needed only if A "
    "itself is stored.",
]

MEANINGS = {
    "error_two_layers": "largest difference of two layers from the Newton step, with A stored",
    "error_one_layer_transpose_stored": "largest difference of one layer from the Newton step, with A^T "
    "stored",
    "error_one_layer_symmetric": "largest difference of one layer from the Newton step, for symmetric A",
    "error_two_layers_transpose_stored": "largest difference of two layers with A^T stored, as stated",
}


@dataclass(eq=False)
class Lemma4_1:
    """Settings: dimension, condition of A, number of random A and X0 (`samples`), their seed."""

    reference = "Lemma 4.1; Appendix A.1"
    claim = (
        "Two layers of linear attention with two heads and width 4d take one step of Newton's iteration, "
        "X_1 = X_0 (2I - A X_0), for every A and X_0."
    )

    dim: int = integer(5, 1, MAX_DIM, TOO_LONG)
    condition: float = 100.0
    seed: int = integer(0, 0)
    samples: int = integer(32, 1, 10_000)

    def __post_init__(self) -> None:
        validate(self)
        self.condition = validate_condition(self.condition, 1e12)

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        A_BDD = draw_designs(rng, self.dim, self.dim, self.condition, self.samples)
        X_BDD = torch.from_numpy(rng.standard_normal(A_BDD.shape))
        two, one = inversion.lemma4_1(self.dim), inversion.lemma4_1_one_layer(self.dim)
        S_BDD = (A_BDD + A_BDD.mT) / 2
        errors = {
            "error_two_layers": _error(two, X_BDD, A_BDD, A_BDD),
            "error_one_layer_transpose_stored": _error(one, X_BDD, A_BDD.mT, A_BDD),
            "error_one_layer_symmetric": _error(one, X_BDD, S_BDD, S_BDD),
        }
        as_stated = _error(two, X_BDD, A_BDD.mT, A_BDD)
        wrong = {
            name: _error(with_layer(two, number, layer), X_BDD, A_BDD, A_BDD)
            for number, name, layer in mutants(two)
        }
        if self.dim > 1:
            wrong["A^T stored, two layers"] = as_stated
        bound = path_rounding(2 * (4 * two.width + self.dim) + 2 * self.dim + 4)
        sizes_off = int((len(two.layers), two.heads, two.width, len(one.layers)) != (2, 2, 4 * self.dim, 1))
        return finding(
            [
                tried(max_error=max(errors.values()))
                .means("largest difference of a stack's output from the Newton step, relative to its terms")
                .at_most(bound, PATH),
                exact(sizes_off=sizes_off)
                .means("number, 0 or 1, that is 1 if layers, heads or width differ from those stated")
                .at_most(0.5, "the claim"),
                tried(**errors, error_two_layers_transpose_stored=as_stated).means(**MEANINGS),
                exact(layers=len(two.layers), heads=two.heads, width=two.width).means(
                    layers="number of layers", heads="number of heads", width="width"
                ),
                exact(layers_transpose_stored=len(one.layers)).means("number of layers if A^T is stored"),
            ],
            least_wrong("the error of a wrong stack", wrong, bound),
            remarks=REMARKS,
            details=describe(
                two,
                "Two layers with A in block A, as in the proof",
                describe(one, "One layer with A^T in block A, as in the statement"),
            ),
        )


def _error(stack: ColumnStack, X_BDD: Tensor, stored_BDD: Tensor, A_BDD: Tensor) -> float:
    """Return the error of every block after the stack, as a share of the sizes of each entry's terms."""
    H_BPM = inversion.prompt_of_lemma(stack, X_BDD, stored_BDD)
    expected_BPM, sizes_BPM = H_BPM.clone(), torch.ones_like(H_BPM)
    expected_BPM[:, stack.rows["X"]] = 2 * X_BDD - X_BDD @ (A_BDD @ X_BDD)
    sizes_BPM[:, stack.rows["X"]] = 2 * X_BDD.abs() + X_BDD.abs() @ A_BDD.abs() @ X_BDD.abs()
    return or_infinite(float(((stack(H_BPM) - expected_BPM).abs() / sizes_BPM).max()))
