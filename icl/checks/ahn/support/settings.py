"""Settings of most of ahn's checks, and the law of the prompts that they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icl.checks.settings import integer, law_of, sample_count, validate

Eigenvalues = Sequence[float] | None
Matrix = Sequence[Sequence[float]] | str | None  # nested lists or a .npy file

MAX_DIM = 32  # on S
MAX_LAYERS_WITH_B, DEGREES = 4, "q has degree (3^L - 1)/2, the risk Wishart moments of degree 3^L"
MIN_SAMPLES = 1000  # below, the sampled test rejects more often than one time in a thousand (measured)


@dataclass(eq=False)
class PromptSettings:
    """Dimension, context length, eigenvalues or covariance Sigma of x, seed of all draws."""

    dim: int = integer(5, 1)
    context: int = integer(20, 1)
    eigenvalues: Eigenvalues = None
    covariance: Matrix = None
    seed: int = integer(0, 0)

    task_covariance = "identity"  # of w, or "inverse": Sigma^{-1}

    def __post_init__(self) -> None:
        validate(self)
        w = self.task_covariance
        self.law = law_of(self.dim, self.context, self.seed, **self.sigma(), task_covariance=w)

    def sigma(self) -> dict[str, Eigenvalues | Matrix]:
        """Every way to name Sigma."""
        return {"eigenvalues": self.eigenvalues, "covariance": self.covariance}


@dataclass(eq=False)
class CriticalSetSettings(PromptSettings):
    """The same with w ~ N(0, Sigma^{-1}), of Theorems 3 and 4: Sigma = W W^T by W too (`distortion`, section
    4.2), layers, prompts of the sampled test.
    """

    distortion: Matrix = None
    dim: int = integer(5, 1, MAX_DIM, f"a prompt is turned by {MAX_DIM}^2 rotations and more, at D^3 each")
    layers: int = integer(3, 1)
    samples: int = sample_count(20000, MIN_SAMPLES)

    task_covariance = "inverse"

    def sigma(self) -> dict[str, Eigenvalues | Matrix]:
        return super().sigma() | {"distortion": self.distortion}
