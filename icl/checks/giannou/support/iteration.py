"""Theorem 4.2's stack against Newton's iteration and least squares, with and without the ridge of Remark 4.4.

B samples, N context, D covariates, T steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.algorithms.newton import newton_iteration
from icl.checks.giannou.support.mutants import least_wrong, mutants, or_infinite
from icl.checks.giannou.support.problems import (
    MAX_CONTEXT,
    MAX_DIM,
    TOO_LONG,
    Design,
    draw_designs,
    load_design,
    require_full_rank,
    validate_condition,
)
from icl.checks.numbers import exact, finding, tried
from icl.checks.rounding import PATH, path_rounding
from icl.checks.settings import integer, validate
from icl.checks.verdict import Finding
from icl.constructions.giannou.describe import describe
from icl.constructions.giannou.regression import prompt_of_theorem, start, theorem4_2
from icl.models.giannou.columns import ColumnStack, forward
from icl.random import generator
from icl.theory.quadratic import EPSILON


@dataclass(frozen=True, eq=False)
class Regression:
    """One prompt: A, y, a_test and the ridge mu."""

    A_ND: Tensor
    y_N: Tensor
    test_D: Tensor
    mu: float

    def gram(self) -> Tensor:
        return self.A_ND.mT @ self.A_ND + self.mu * torch.eye(self.A_ND.shape[1], dtype=torch.float64)

    def stack(self, steps: int) -> ColumnStack:
        return theorem4_2(self.A_ND.shape[1], steps, start(self.A_ND, self.mu), self.mu)

    def prompt(self, stack: ColumnStack) -> Tensor:
        return prompt_of_theorem(stack, self.A_ND, self.y_N, self.test_D)

    def operations(self) -> int:
        """Count those along one step's path, of the stack and of the iteration it is compared with."""
        N, D = self.A_ND.shape
        return 2 * (4 * (4 * D + 3) + 2 * N + 4 * D)


@dataclass(eq=False)
class Regressions:
    """Sizes, steps T, condition of A (or A itself as `design`), seed, prompts (`samples`)."""

    dim: int = integer(5, 1, MAX_DIM, TOO_LONG)
    context: int = integer(20, 1, MAX_CONTEXT, TOO_LONG)
    steps: int = integer(20, 0, 64)
    condition: float = 10.0
    design: Design = None
    seed: int = integer(0, 0)
    samples: int = integer(8, 1, 1000)

    def __post_init__(self) -> None:
        validate(self)
        require_full_rank(self.dim, self.context)
        self.condition = validate_condition(self.condition, 1e4)
        self.design_ND = load_design(self.design, self.dim, self.context)

    def regressions(self, mu: float) -> list[Regression]:
        """Draw labels of a random w and noise; drawn designs are scaled at random, so epsilon matters."""
        rng, B, N, D = generator(self.seed, "check"), self.samples, self.context, self.dim
        A_BND = draw_designs(rng, N, D, self.condition, B)
        A_BND = A_BND * torch.from_numpy(10 ** rng.uniform(-0.5, 0.5, (B, 1, 1)))
        if self.design_ND is not None:
            A_BND = self.design_ND.expand(B, -1, -1)
        w_BD1 = torch.from_numpy(rng.standard_normal((B, D, 1)))
        noise_BN = torch.from_numpy(0.1 * rng.standard_normal((B, N)))
        test_BD = torch.from_numpy(rng.standard_normal((B, D)))
        y_BN = (A_BND @ w_BD1)[..., 0] + noise_BN
        return [Regression(A, y, test, mu) for A, y, test in zip(A_BND, y_BN, test_BD, strict=True)]


@dataclass(frozen=True, eq=False)
class Reference:
    """The iteration by itself, and how far rounding may carry it, in units of 2^-52 times operations.

    An error E of X_t becomes E - E (R X_t) - (X_t R) E + E + .., in the eigenvectors of R entry by entry a
    multiple 2 - p_i - p_j with p the eigenvalues of X_t R; to it comes the rounding of 2 X - X R X, with R
    itself rounded. X_0 and R are left over when the first layer takes an identity away: whatever their own
    size, their rounding is that of an identity. Sizes are Frobenius norms.
    """

    X_TDD: list[Tensor]
    sizes_T: list[float]
    answer: float
    answer_size: float
    least_squares: float

    @classmethod
    def of(cls, problem: Regression, steps: int) -> Reference:
        A_ND, y_N, R_DD = problem.A_ND, problem.y_N, problem.gram()
        epsilon, unit = start(A_ND, problem.mu), EPSILON * problem.operations()
        X_TDD = newton_iteration(R_DD, epsilon * R_DD, 2, steps)
        # The first layer: X = I + epsilon A^T A - (1 - epsilon mu) I, and R with 1 for epsilon.
        identities = 2 * len(R_DD) ** 0.5
        terms_of_R = float(A_ND.square().sum()) + problem.mu * len(R_DD) ** 0.5
        r_D = torch.linalg.svdvals(A_ND) ** 2 + problem.mu
        p_D, sizes = epsilon * r_D**2, [epsilon * terms_of_R + identities]
        terms_of_R += identities
        for X_DD in X_TDD[:-1]:
            X = float(X_DD.norm())
            carried = float((2 - p_D[:, None] - p_D).abs().max()) + unit * sizes[-1] * float(r_D[0])
            sizes.append(carried * sizes[-1] + 2 * X + 2 * X**2 * terms_of_R)
            p_D = 2 * p_D - p_D**2
        answer = float(y_N @ (A_ND @ (X_TDD[-1] @ problem.test_D)))
        read = float(y_N.norm() * A_ND.norm() * problem.test_D.norm())
        stacked = np.vstack([A_ND.numpy(), problem.mu**0.5 * np.eye(len(R_DD))])
        targets = np.concatenate([y_N.numpy(), np.zeros(len(R_DD))])
        w_D = np.linalg.lstsq(stacked, targets, rcond=None)[0]
        size = read * (float(X_TDD[-1].norm()) + sizes[-1])
        return cls(X_TDD, sizes, answer, size, float(problem.test_D.numpy() @ w_D))


def compare_with_iteration(problems: list[Regression], steps: int, remarks: list[str]) -> Finding:
    """Compare the stack's X after every layer and its answer with those of the iteration."""
    references = [Reference.of(problem, steps) for problem in problems]
    errors = [_errors(problem, steps, its) for problem, its in zip(problems, references, strict=True)]
    largest = {name: max(error[name] for error in errors) for name in errors[0]}
    bound = path_rounding(problems[0].operations())
    first, its, stack = problems[0], references[0], problems[0].stack(steps)
    stated = (3 + steps, 2, 4 * first.A_ND.shape[1] + 3)
    sizes_off = int((len(stack.layers), stack.heads, stack.width) != stated)
    distance = max(abs(its.answer - its.least_squares) / abs(its.least_squares) for its in references)
    wrong = _wrong(stack, stack.every_layer(first.prompt(stack)), its)
    return finding(
        [
            tried(max_error=max(largest["X"], largest["answer"]))
            .means(
                "largest difference of X_t or of the prediction from Newton's iteration, relative to its "
                "terms"
            )
            .at_most(bound, PATH),
            exact(sizes_off=sizes_off)
            .means("number, 0 or 1, that is 1 if layers, heads or width differ from those stated")
            .at_most(0.5, "the claim"),
            tried(
                max_error_X=largest["X"],
                max_error_answer=largest["answer"],
                max_relative_error=largest["relative"],
                distance_to_least_squares=distance,
            ).means(
                max_error_X="largest difference of X_t from Newton's iteration, relative to its terms",
                max_error_answer="difference of the prediction from that of the iteration, relative to its "
                "terms",
                max_relative_error="difference of the prediction from that of the iteration, relative to "
                "the prediction",
                distance_to_least_squares="relative difference of the iteration's prediction from least "
                "squares",
            ),
            exact(layers=len(stack.layers), heads=stack.heads, width=stack.width).means(
                layers="number of layers", heads="number of heads", width="width"
            ),
        ],
        least_wrong("the error of a wrong stack at the layer where it appears", wrong, bound),
        notes=[
            "Errors are relative to the terms; the errors of earlier steps are propagated by the "
            "derivative of the iteration."
        ],
        remarks=remarks,
        details=describe(stack),
    )


def _errors(problem: Regression, steps: int, its: Reference) -> dict[str, float]:
    stack = problem.stack(steps)
    states = stack.every_layer(problem.prompt(stack))
    answer = float(stack.block(states[-1], "out")[0, 0])
    return {
        "X": max(_X_error(stack, states[t + 1], its, t) for t in range(steps + 1)),
        "answer": _answer_error(stack, states[-1], its),
        "relative": or_infinite(abs(answer - its.answer) / abs(its.answer)),
    }


def _wrong(stack: ColumnStack, states: list[Tensor], its: Reference) -> dict[str, float]:
    """Return the error of each mutant where it first shows: in X after its own layer, or in the answer."""
    wrong = {}
    for number, name, layer in mutants(stack):
        H_PM = forward(layer, states[number])
        if number < len(its.X_TDD):
            wrong[name] = _X_error(stack, H_PM, its, number)
        else:
            for later in stack.layers[number + 1 :]:
                H_PM = forward(later, H_PM)
            wrong[name] = _answer_error(stack, H_PM, its)
    return wrong


def _X_error(stack: ColumnStack, H_PM: Tensor, its: Reference, t: int) -> float:
    X_DD = its.X_TDD[t]
    off_DD = stack.block(H_PM, "X")[:, : len(X_DD)] - X_DD
    return or_infinite(float(off_DD.norm()) / its.sizes_T[t])


def _answer_error(stack: ColumnStack, H_PM: Tensor, its: Reference) -> float:
    """Return the error of the row `out`, which must be (answer, 0, .., 0)."""
    off_M = stack.block(H_PM, "out")[0].clone()
    off_M[0] -= its.answer
    return or_infinite(float(off_M.abs().max()) / its.answer_size)
