"""Parameters of a matrix M: itself, or M' of M = left M' right.

A change of coordinates changes no risk, only what a step of an optimizer does. R replicas, L layers.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn


class Coordinates(nn.Module):
    """`maps`: (left_RII, right_RJJ) by matrix; matrices without one are trained as they are."""

    def __init__(self, maps: Mapping[str, tuple[Tensor, Tensor]], dtype: torch.dtype) -> None:
        super().__init__()
        self.mapped = tuple(maps)
        for name, (left_RII, right_RJJ) in maps.items():
            self.register_buffer(f"left_{name}", left_RII.to(dtype), persistent=False)
            self.register_buffer(f"right_{name}", right_RJJ.to(dtype), persistent=False)

    def parameters_of(self, matrices: Mapping[str, Tensor]) -> dict[str, nn.Parameter]:
        found = {}
        for name, M_RLIJ in matrices.items():
            if name in self.mapped:
                left_R1II, right_R1JJ = self._maps(name)
                M_RLIJ = torch.linalg.solve(left_R1II, M_RLIJ.detach())
                M_RLIJ = torch.linalg.solve(right_R1JJ, M_RLIJ, left=False)
            found[name] = M_RLIJ if isinstance(M_RLIJ, nn.Parameter) else nn.Parameter(M_RLIJ)
        return found

    def matrices_of(self, names: Sequence[str], parameters: Sequence[Tensor], r: int | None) -> list[Tensor]:
        """Return the matrices of all replicas, or of replica r alone."""
        found = []
        for name, M_RLIJ in zip(names, parameters, strict=True):
            if name in self.mapped:
                left_R1II, right_R1JJ = self._maps(name)
                one = slice(None) if r is None else slice(r, r + 1)
                M_RLIJ = left_R1II[one] @ M_RLIJ @ right_R1JJ[one]
            found.append(M_RLIJ)
        return found

    def _maps(self, name: str) -> tuple[Tensor, Tensor]:
        return getattr(self, f"left_{name}")[:, None], getattr(self, f"right_{name}")[:, None]
