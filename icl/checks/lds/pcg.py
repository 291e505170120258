"""lds, Section 5: a layer of pattern (13) as two steps of preconditioned conjugate gradients on L_AR(s).

With the Gram matrix [[H, g], [g^T, g0]] (H the Hessian of L_AR(s), g minus its gradient at 0), W_QK's rows
[P, p] and W_V's last column (q, c_N) the layer predicts with w = P H q + (p q^T + c_N P) g + c_N g0 p. Three
identities are checked: this, from the layer run on tokens; (17) with Gamma + P in place of Gamma H + P, and
with E.3's P'; and E.2's expansion of w_2, from Shewchuk's algorithm run with preconditioner P^-1 and d_0 = q.

Then the reading itself: how far are the predictions of the best head of (13) from those of the two steps, and
from those of one gradient step, over simulated sequences? As shares of the layer's own root mean square. The
two steps divide by what may be near 0, so that the square of this distance need have no mean: medians are
compared, each by an interval between two order statistics, which is one for any law.

B sequences, s window, P = s + 1 token width.
"""

from __future__ import annotations

from dataclasses import dataclass

from icl.checks.lds.support.kalman import compare_kalman
from icl.checks.lds.support.pcg_distances import best_step_size, distances_from_layer, risks
from icl.checks.lds.support.pcg_layer import identity_errors
from icl.checks.lds.support.population import PARTS, Population, balance
from icl.checks.lds.support.sequences import Windows
from icl.checks.numbers import finding, sampled, tried
from icl.checks.settings import fits_in_memory, integer
from icl.checks.verdict import Control, Finding
from icl.errors import InputError
from icl.random import generator
from icl.theory.dynamical_system import parity_mask
from icl.theory.lds.value_search import search_values
from icl.theory.quadratic import EPSILON

LEAST_SAMPLES = 320
BEATEN = (
    "the median distance from one gradient step: 99.9 % intervals of both medians, between order statistics"
)

METHODS = {"pcg": "two PCG steps", "gd": "one gradient step", "plain_cg": "two plain CG steps"}
MEANINGS = {
    "predictor_error": "largest difference of the layer from w = P H q + ..., relative to its terms",
    "gamma_error": "largest difference of the layer from (17) with Gamma + P, relative to its terms",
    "e3_error": "largest difference of the layer from (17) with the P' of E.3, relative to its terms",
    "expansion_error": "largest difference of two PCG steps from the expansion of E.2, relative to its terms",
    "printed_17_error": "largest difference of the layer from (17) as printed, relative to its terms",
}


@dataclass(eq=False)
class Pcg(Windows):
    """Settings: setting, window s (2 to 5), length T, dim, seed, samples (sequences; a fifth as many systems
    where these are drawn)."""

    reference = "Section 5, eqs. (15) to (17); Appendices E.2 and E.3"
    claim = (
        "For s >= 2 a layer of pattern (13) predicts by (17), and its predictions are closer to two steps "
        "of preconditioned conjugate gradients on L_AR(s), with preconditioner P^-1 and first direction "
        "q, than to one step of gradient descent."
    )

    window: int = integer(2, 2, 5, "the searches take minutes")
    samples: int = 100_000

    def __post_init__(self) -> None:
        if self.window == 1:
            raise InputError(
                "check.window=1: two PCG steps on one weight are least squares, and (13) is Theorem 4.1's"
            )
        super().__post_init__()
        fits_in_memory(self.samples, LEAST_SAMPLES, self.dim**2 + self.length)

    def measure(self) -> Finding:
        population = Population(self.law, max(self.samples // 5, 3 * PARTS), self.seed)
        rng = generator(self.seed, "search")
        best = search_values(population.risk, 1, rng, 4, parity_mask(self.window)[0])
        b_P, a_KP = balance(best, self.window)
        rngs = [generator(self.seed, "eval")]
        systems = self.law.systems(rngs, self.samples)
        y_RBT = self.law.observations(systems, rngs)
        eta = best_step_size(population)
        distances, intervals = distances_from_layer(population, y_RBT, (b_P, a_KP), eta)
        # Each side sums N products a Gram entry and s an entry of H q, P H q or a quotient: four such sums.
        bound = EPSILON * 8 * (self.law.context + 4 * self.window)
        source = "rounding: 2^-52 times 8 (N + 4 s), relative to the terms"
        errors, printed = identity_errors(y_RBT[:, :64], b_P, a_KP)
        kalman = compare_kalman(self.law, systems)
        # The identities are the algebra of the claim; where they stand, the distances are what it says.
        return finding(
            [
                sampled(distance_pcg=distances["pcg"])
                .means("median distance of the layer from two PCG steps, over the layer's root mean square")
                .judged(_is_nearer(intervals["pcg"], intervals["gd"]), "<", distances["gd"], BEATEN),
                tried(identity_error=max(errors.values()))
                .means("largest error of the three identities, relative to its terms")
                .at_most(bound, source),
                kalman,
                tried(**errors, printed_17_error=printed).means(**MEANINGS),
                *risks(population, (b_P, a_KP), eta, y_RBT),
                sampled(distance_gd=distances["gd"], distance_plain_cg=distances["plain_cg"]).means(
                    distance_gd="median distance of the layer from one gradient step, over the layer's "
                    "root mean square",
                    distance_plain_cg="median distance of the layer from two plain CG steps, over the "
                    "layer's root mean square",
                ),
                sampled(**{f"distance_{name}_interval": ends for name, ends in intervals.items()}).means(
                    **{
                        f"distance_{name}_interval": "99.9 % interval of the median distance from "
                        f"{METHODS[name]}"
                        for name in intervals
                    }
                ),
            ],
            Control(
                "the error of (17) as printed, (Gamma H + P) H q + ..., relative to its terms",
                printed,
                printed > bound,
            ),
            notes=[
                population.note,
                f"Distances are medians over {self.samples} simulated sequences, for the best head of (13) "
                "that a search found.",
            ],
            remarks=_remarks(kalman[1].value, distances),
        )


def _is_nearer(one: list[float], other: list[float]) -> str:
    return "holds" if one[1] < other[0] else "fails" if one[0] > other[1] else "undecided"


def _remarks(ratio: float, distances: dict[str, float]) -> list[str]:
    return [
        "(17) as printed is wrong: with P' = Gamma H the term c_N g0 p is not P' H q but Gamma H q. The "
        "correct form is (Gamma + P) H q + ...; the other matrix P' of appendix E.3 does satisfy P' H q = "
        "c_N g0 p.",
        "In (15) and (60) the vector called the gradient of L_AR(s) at 0 is minus the gradient. In E.2, f "
        "has + b^T w, but r_0 = b - A w_0 belongs to - b^T w.",
        "The step size in Algorithm 1 must divide by d_i^T z_i, not by d_0^T z_0. Section 5 assumes that "
        "P' is invertible; this can only refer to P, because Gamma and P' have rank one.",
        "The gain in (2) needs sigma_v^2 instead of sigma_v: the filter as printed has "
        f"{ratio:.3f} times the squared error.",
        "The layer resembles the two steps but does not equal them. Half of the sequences differ by more "
        f"than {distances['pcg']:.2g} of the layer's root mean square from the two steps, and by more than "
        f"{distances['gd']:.2g} from one gradient step: (17) is quadratic in the Gram matrix, whereas the "
        "steps divide by it.",
    ]
