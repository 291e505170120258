"""The trained part of a transformer: named stacks of matrices, the replica axis first.

Every parameter has leading axes (R, L), (R, L, H) or (R, 1); the trainer clips, logs and draws matrix by
matrix. R replicas, L layers, H heads.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from icl.errors import InputError, real, reals, whole
from icl.random import generator

MAX_LAYERS = 64


class Matrices(nn.Module, ABC):
    """Sizes, i.i.d. Gaussian initialisation per seed, and names of the matrices."""

    sparse: ClassVar[bool] = False  # of ahn's eq. (8) or (11)
    with_b: ClassVar[bool] = False  # of ahn's eq. (11): B is free

    def __init__(self, dim: int, layers: int = 3, init_std: float | Sequence[float] = 1e-4) -> None:
        super().__init__()
        self.dim = whole("task.dim", dim, 1)
        self.layers = whole("model.layers", layers, 1, MAX_LAYERS)
        if isinstance(init_std, Sequence) and not isinstance(init_std, str):
            self.init_std: float | list[float] = reals("model.init_std", init_std, len(init_std), 0)
        else:
            self.init_std = real("model.init_std", init_std, 0)

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Parameter name -> shape without the replica axis."""

    def spread(self, name: str) -> float:
        """Return the ratio of the first entries' standard deviation to init_std."""
        return 1.0

    def initialise(self, seeds: Sequence[int], dtype: torch.dtype = torch.float64) -> None:
        """Replica r's weights are a function of seeds[r] alone."""
        stds = self.init_std if isinstance(self.init_std, list) else [self.init_std] * len(seeds)
        if len(stds) != len(seeds):
            raise InputError(f"model.init_std={stds}: has {len(stds)} entries for {len(seeds)} seeds")
        streams = [generator(seed, "init") for seed in seeds]
        for name, shape in self.shapes().items():
            scaled = [std * self.spread(name) for std in stds]
            draws = [std * rng.standard_normal(shape) for std, rng in zip(scaled, streams, strict=True)]
            setattr(self, name, nn.Parameter(torch.from_numpy(np.stack(draws)).to(dtype)))

    def load(self, matrices: dict[str, Tensor]) -> None:
        """Take given weights (with a replica axis) instead of random ones."""
        for name, shape in self.shapes().items():
            if name not in matrices or tuple(matrices[name].shape[1:]) != shape:
                found = tuple(matrices[name].shape) if name in matrices else "nothing"
                raise InputError(
                    f"weights {name}: must have shape (seeds, {', '.join(map(str, shape))}), got {found}"
                )
            setattr(self, name, nn.Parameter(matrices[name].clone()))

    def sharing(self, parameters: Sequence[Tensor]) -> Self:
        """Return the same family on other parameters, not copied."""
        other = type(self).__new__(type(self))
        other.__dict__ = self.__dict__ | {"_parameters": dict(zip(self.shapes(), parameters, strict=True))}
        return other

    def first(self, layers: int) -> Self:
        """Return the family of the first `layers` layers, on these very parameters."""
        shared = [M[:, :layers] if M.shape[1] == self.layers else M for M in self.matrices().values()]
        other = self.sharing(shared)
        other.layers = layers
        return other

    def matrices(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in self.shapes()}
