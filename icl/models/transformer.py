"""The model of a run, whatever its architecture: matrices, and the predictions they make."""

from abc import ABC, abstractmethod
from typing import Any, Self

from torch import Tensor, nn

from icl.models.matrices import Matrices


class Transformer(nn.Module, ABC):
    """`path` names the prompts it is trained on, tokens or gram. `activation` is identity only where its
    weights are a stack (P, Q) of linear attention, of which a law may know the exact risk."""

    path: str
    activation: str
    parametrization: Matrices

    @abstractmethod
    def on(self, parametrization: Any) -> Self:
        """Return the same model with other weights."""

    @abstractmethod
    def predict(self, prompt: Any) -> Tensor:
        """Return predictions, (R, B), in the sign of the labels."""

    def forward(self, prompt: Any) -> Tensor:
        return self.predict(prompt)
