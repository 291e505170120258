"""looped: layers that may differ do not gain: the best that a search over all A_1 ... A_L finds is the
optimum on multiples of Sigma^-1, with L different steps. The effect is one of sharing. For two layers a sum
of squares proves it (icl.theory.two_layer_certificate).

K starts, L layers, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize

from icl.checks.looped.support import second_route
from icl.checks.looped.support.settings import LoopedSettings
from icl.checks.numbers import Numbers, exact, finding, searched, tried
from icl.checks.settings import integer, search_starts
from icl.checks.verdict import Control, Finding
from icl.errors import InputError
from icl.models import LinearTransformer, SparseA
from icl.progress import track
from icl.random import generator
from icl.theory.looped.weighted import Array
from icl.theory.two_layer_certificate import Certificate, certify

REACHED = 1e-6
ROUNDING_OF_SEARCH = 1e-9
PROVED_DIM = 6
SQUARES = "least eigenvalue of the sum of squares, as a share of its trace: more would make it a difference"
SOURCE = "0 less 10^-9, what rounding leaves of a risk; a search that finds nothing lower is no proof"


@dataclass(eq=False)
class SeparateLayers(LoopedSettings):
    """Settings: of LoopedSettings; random `starts`. Beyond d = 2 the risk is exact to three layers, and the
    proof for two is to d = 6."""

    layers: int = integer(2, 2, 8)
    starts: int = search_starts(4)

    reference = "statement 6"
    claim = "Layers that may differ have no lower risk than the best multiples of Sigma^-1, a step for each."

    def __post_init__(self) -> None:
        super().__post_init__()
        self.model = LinearTransformer(SparseA(self.dim, self.layers))
        if (risk := self.law.exact_risk(self.model)) is None:
            raise InputError(
                f"check.layers={self.layers}: beyond check.dim=2 there is an exact risk to 3 layers"
            )
        self.risk = risk

    def measure(self) -> Finding:
        least = float(self.steps.separate_risk)
        rng = generator(self.seed, "search")
        ends = [self._end(rng) / least - 1 for _ in track(range(self.starts), "starts", self.starts)]
        lowest, proved = min(ends), self.layers == 2 and self.dim <= PROVED_DIM
        squares = certify(self.dim, self.context, generator(self.seed, "check")) if proved else None
        return finding(
            [
                self._squares(squares),
                searched(lowest_excess=lowest)
                .means(
                    "least risk found over all separate layers, relative to that of the best multiples, "
                    "less 1"
                )
                .judged(
                    "fails" if lowest < -ROUNDING_OF_SEARCH else "holds" if squares else "undecided",
                    ">",
                    -ROUNDING_OF_SEARCH,
                    SOURCE,
                ),
                searched(starts_that_end_there=sum(end < REACHED for end in ends)).means(
                    "number of starts that end within 10^-6 of the best multiples"
                ),
                exact(separate_risk=least, scalar_risk=self.steps.least_risk)
                .means(
                    separate_risk="least risk of L multiples of Sigma^-1, in closed form",
                    scalar_risk="least risk of L equal multiples",
                )
                .confirmed(
                    separate_risk=second_route.separate_risk(self.steps),
                    scalar_risk=second_route.scalar_risk(self),
                ),
            ],
            self._control(),
            notes=[
                "For two layers the risk less that of the best multiples is a sum of squares."
                if squares and squares.error < squares.margin
                else "undecided: no start found a lower risk, and no number of starts is a proof; one that "
                f"does refutes it. To {PROVED_DIM} dimensions check.layers=2 is proved, for two "
                "and more context tokens."
            ],
        )

    def _squares(self, squares: Certificate | None) -> Numbers:
        if squares is None:
            return exact()
        return (
            tried(squares_error=squares.error)
            .means("error at random layers of the risk less that of the best multiples, as squares")
            .at_most(squares.margin, SQUARES, otherwise="undecided")
        )

    def _control(self) -> Control:
        """Take equal steps for the best ones: unequal ones must be seen to gain."""
        unequal = float(self.steps.separate_risk) / self.steps.least_risk - 1
        return Control(
            "least risk of unequal steps over that of equal ones, less 1: what separate layers must gain",
            unequal,
            unequal < -ROUNDING_OF_SEARCH,
        )

    def _end(self, rng: np.random.Generator) -> float:
        """Descend from random layers, in coordinates in which Sigma is the identity."""
        size = (1, self.layers, self.dim, self.dim)
        inverse_DD = torch.linalg.inv(self.law.root_RDD[0])
        noise = rng.standard_normal(size) * rng.uniform(0.05, 0.5) / self.dim**0.5
        turned = rng.uniform(0.2, 1.0, (1, self.layers, 1, 1)) * np.eye(self.dim)
        start = noise + turned * self.steps.best

        def log_risk(theta: Array) -> tuple[float, Array]:
            white = torch.tensor(theta.reshape(size), requires_grad=True)
            A_RLDD = inverse_DD.mT @ white @ inverse_DD
            value = self.risk(self.model.on(self.model.parametrization.sharing([A_RLDD])))[0].log()
            (slope,) = torch.autograd.grad(value, white)
            return float(value.detach()), slope.numpy().ravel()

        options = {"maxiter": 300, "ftol": 1e-14, "gtol": 1e-9}
        end = minimize(log_risk, start.ravel(), jac=True, method="L-BFGS-B", options=options)
        return float(np.exp(end.fun))
