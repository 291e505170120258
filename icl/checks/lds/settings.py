"""The settings that the statements of the lds paper share."""

from dataclasses import dataclass
from random import Random

from icl.checks.statement import Statement, setting
from icl.errors import InputError, whole
from icl.theory.lds.layer import Layer
from icl.theory.lds.systems import Law, Noise, System, draw, drawn_systems, independent_modes, listed_modes
from icl.theory.rationals import rational

ranged = setting  # where a class has a field of that name


@dataclass
class Sequences(Statement):
    """Setting (a) to (d) of section 5, length T, dimension of the state, variances of w, v and x_0. In (c)
    and (d) the law is that of `samples` drawn systems, each with its mirror image (-A, c)."""

    setting: str = ranged("a", choices=("a", "b", "c", "d"))
    length: int = ranged(30, 3, 10, most=100, beyond="the moments take minutes")
    dim: int = ranged(5, 1, 5, most=20, beyond="a drawn system has too many digits")
    process_noise: float = ranged(0.01, 0.0, 2.0)
    observation_noise: float = ranged(0.01, 0.0, 2.0)
    initial_variance: float = ranged(0.01, 0.0, 2.0)
    seed: int = ranged(0, 0, 1000)
    samples: int = ranged(2, 1, 3, most=100, beyond="the moments take minutes")

    paper = "lds"
    law = "x_t = A x_{t-1} + w_t, y_t = c.x_t + v_t, A and -A of one law, sequences y_1 .. y_T"

    def __post_init__(self) -> None:
        super().__post_init__()
        variances = self.process_noise, self.observation_noise, self.initial_variance
        self.noise = Noise(*map(rational, variances))
        if not any(self.noise):
            raise InputError("check.process_noise=0: with no noise and x_0 = 0 every observation is 0")

    def systems(self, count: int) -> list[System]:
        rng = Random(self.seed)
        return [draw(self.setting, self.dim, rng) for _ in range(count)]

    def sequences(self, length: int, spectrum: list[float] | None = None) -> Law:
        """Return the law of y, its eigenvalues uniform or, up to a common sign, those listed."""
        if self.setting in ("a", "b"):
            if spectrum is None:
                return independent_modes(self.setting, self.dim, length, self.noise)
            return listed_modes(self.setting, spectrum, length, self.noise)
        process = self.noise.covariance(self.setting, self.dim)
        return drawn_systems(self.systems(self.samples), length, self.noise, process)


@dataclass
class Windows(Sequences):
    """Sequences as AR(s) tokens; s is the window."""

    window: int = ranged(2, 1, 2, most=6, beyond="the form has (window (window + 1)^2 / 2)^2 entries")

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("check.length", self.length, self.window + 2)  # one token

    def regular_layer(self) -> Layer:
        """Return the layer's risk, in which no two heads predict the same but for their scale."""
        layer = Layer(self.sequences(self.length), self.window)
        if layer.form.rank() < layer.form.nrows():
            raise InputError(
                "check.length, check.dim and the noise: the form of the risk is singular here, many heads "
                "predict the same"
            )
        return layer
