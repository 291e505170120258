"""giannou, Theorem 4.2 and Remark 4.4: least squares and ridge by T steps of Newton's iteration."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from flint import arb, arb_mat, fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.errors import InputError, given_matrix, whole
from icl.theory.giannou import least_squares
from icl.theory.giannou.columns import balls, distance, forward, lacking_a_head, near, width
from icl.theory.giannou.logistic import whole_numbers
from icl.theory.rationals import identity, matrix, rational

WITHIN = fmpq(1, 10**12)  # of the prediction: how wide its ball may be


@dataclass
class Theorem4_2(Statement):
    dim: int = setting(5, 1, 8, most=64, beyond="the rationals of all layers take minutes")
    context: int = setting(20, 1, 24, most=1000, beyond="the rationals of all layers take minutes")
    steps: int = setting(20, 0, 24, most=200, beyond="nothing new is to be seen")
    condition: float = setting(10.0, 1.0, 1e3)  # kappa(A), singular values spread evenly in log
    mu: float = setting(0.0, 0.0, 2.0)  # ridge: Remark 4.4
    design: Sequence[Sequence[float]] | str | None = None  # A itself
    seed: int = setting(0, 0)

    paper, where = "giannou", "Theorem 4.2, Remarks 4.3 and 4.4; Appendix A.2"
    title = "Theorem 4.2: least squares and ridge by Newton's iteration"
    law = "any n x d matrix A of full rank, any y and a_test; R = A^T A + mu I, X_0 = epsilon R"
    claim = (
        "3 + T layers of linear attention with two heads and width 4d + 3 predict a_test^T X_T A^T y, where "
        "X_T is the result of T steps of Newton's iteration for the inverse of A^T A + mu I."
    )
    quote = (
        '"there exists a linear Transformer consisting of 3 + T layers, where each layer has 2 attention '
        'heads and width equal to 4d + 3" (Theorem 4.2)'
    )
    formula = (
        r"X_{t+1} = X_t (2I - (A^\top A + \mu I) X_t),\quad \hat y = a^\top X_T A^\top y\quad\text{in } 3 + T"
        r"\text{ layers}"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("check.context", self.context, self.dim)  # [I 0] is d x n
        if self.design is not None and self._given().rank() < self.dim:
            raise InputError("check.design: A^T A is singular, it has no inverse to iterate to")

    def measure(self, m: Measured) -> None:
        A, y, test = self._problem()
        mu, T = rational(self.mu), self.steps
        R = A.transpose() * A + mu * identity(self.dim)
        epsilon = fmpq(3, 4) / least_squares.norm_bound(R) ** 2  # any below 2 / |R|^2 converges
        layers, prompt = least_squares.theorem4_2(T, epsilon, mu), least_squares.prompt(A, y, test)
        state, H, apart, wrong = balls(prompt), prompt, [], []
        for t, layer in enumerate(layers):  # on rationals the layer and its step have no error
            stated = least_squares.stated_layer(t, T, H, epsilon, mu)
            apart.append(distance(forward(layer, H), stated))
            wrong += [distance(forward(mutant, H), stated) for mutant in lacking_a_head(layer)]
            state = forward(layer, state)
            H = near(state)
        about = "largest difference of a layer from its step, on a rational state near its own"
        m.zero("layer_error", max(apart), about)
        m.control("the least difference of a layer that lacks one of its heads", min(wrong), of="layer_error")
        X, target = [arb_mat(epsilon * R)], A.transpose() * y.transpose()
        for _ in range(max(T, 1)):
            X.append(2 * X[-1] - X[-1] * (arb_mat(R) * X[-1]))
        answer, least = state["out"][0, 0], (test * R.solve(target))[0, 0]

        def off(t: int) -> arb:
            return (answer - (arb_mat(test) * X[t] * arb_mat(target))[0, 0]) / least

        m.zero("answer", off(T), "prediction minus a_test^T X_T A^T y, over least squares", within=WITHIN)
        m.control("the same after no step, or one where there is none", off(0 if T else 1), of="answer")
        sizes = [len(layers) - 3 - T, max(map(len, layers)) - 2, width(prompt) - (4 * self.dim + 3)]
        m.zero("sizes_off", sizes, "layers, heads and width less those stated")
        m.note(
            "The operations are described correctly, but the listed weights are wrong: the key of a Newton "
            "layer must read block 2 (R), not 1; the key of the first output layer must read block 4 (A^T) "
            "and its query block 1 (X_T), not 3 and 3; and the values of the last layer must read row 4d+3, "
            "not the row of y. H_1 is printed as H_0 minus [-I; -I; ..]; the second head is added, and "
            "removes the identity."
        )
        m.note(
            "From X_0 = epsilon A^T A eigenvalues spread as kappa(A)^4. X_0 = epsilon I, which block 1 also "
            "allows, gives kappa(A)^2 and halves the number of steps before convergence is quadratic."
        )

    def _problem(self) -> tuple[fmpq_mat, fmpq_mat, fmpq_mat]:
        """Draw whole numbers in y and a_test, and A of the condition asked for, exactly."""
        rng, d, n = Random(self.seed), self.dim, self.context
        kappa = rational(self.condition)
        values = [rational(float(kappa) ** (-k / max(d - 1, 1))) for k in range(d - 1)]
        values.append(1 / kappa if d > 1 else fmpq(1))
        A = least_squares.design((whole_numbers(rng, n, 1, 9), whole_numbers(rng, d, 1, 9)), values)
        y, test = whole_numbers(rng, 1, n, 9), whole_numbers(rng, 1, d, 9)
        return A if self.design is None else self._given(), y, test

    def _given(self) -> fmpq_mat:
        return matrix(given_matrix("check.design", self.design, self.context, self.dim).tolist())
