"""lu: the risk of given weights at finite d, by its formula and as the mean over prompts as tokens."""

from dataclasses import dataclass
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.theory.lu.finite import Tasks, form, risk, risk_of_tokens
from icl.theory.rationals import rational


@dataclass
class ExactRisk(Statement):
    """Dimension, examples l, k tasks, noise, law of the new tasks; the seed draws weights and tasks."""

    dim: int = setting(5, 1, 6, most=15, beyond="there are too many monomials")
    context: int = setting(10, 1, 10**6)
    tasks: int = setting(3, 1, 20, most=1000, beyond="there are too many monomials")
    rho: float = setting(0.1, 0.0, 2.0)
    law: str = setting("sphere", choices=("sphere", "gaussian"))  # type: ignore[misc]
    seed: int = setting(0, 0, 1000)

    paper, where = "lu", "Figures 1, 2 and 4, the risk of simulated weights; formula of the published code"
    title = "The risk of any weights at finite d"
    claim = "The published formula is the risk of any weights of reduced linear attention, at any d."
    quote = "formula of the published code; the paper's text was not at hand"
    formula = (
        r"f(\Gamma) = 1 + \rho + \frac{1 + \rho}{d} \mathrm{tr} \Gamma B \Gamma^\top "
        r"- \frac{2}{d} \mathrm{tr} \Gamma A"
    )

    def measure(self, m: Measured) -> None:
        rng, d, n, rho = Random(self.seed), self.dim, self.context, rational(self.rho)

        def drawn(count: int) -> list[fmpq]:
            return [fmpq(rng.randint(-9, 9), rng.randint(1, 9)) for _ in range(count)]

        Gamma = fmpq_mat(d, d + 1, [*drawn(d * (d + 1) - 1), fmpq(1)])
        of_tasks: dict[str, Tasks] = {"new": self.law, "old": [drawn(d) for _ in range(self.tasks)]}
        for name, tasks in of_tasks.items():
            formula = risk(Gamma, *form(tasks, d, n, rho))
            tokens = risk_of_tokens(Gamma, tasks, n, rho)
            of, about = f"difference_{name}", f"risk on {name} tasks by the formula less that by the tokens"
            m.zero(of, formula - tokens, about)
            longer = risk(Gamma, *form(tasks, d, 2 * n, rho))
            m.control(f"the formula at twice the examples, on {name} tasks", longer - tokens, of=of)
