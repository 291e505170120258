"""Weights as their arrays: the family they are of, and matrices with a leading seed axis."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from icl.errors import InputError

_FAMILIES = {frozenset("A"): "sparse_a", frozenset("AB"): "sparse_ab", frozenset("PQ"): "full"}


def family_name(cls: type) -> str:
    """Return the name of a parametrization: yq_lsa of YqLSA."""
    return re.sub("(?<=[a-z])(?=[A-Z]+$)", "_", cls.__name__).lower()


def matrices_of(arrays: Mapping[str, np.ndarray], dim: int) -> tuple[str, dict[str, torch.Tensor]]:
    """Return the family and the matrices of one set of weights at this dimension, or refuse them."""

    def require(condition: Any, reason: str) -> None:
        if not condition:
            raise InputError(reason)

    family, names = _FAMILIES.get(frozenset(arrays), ""), ", ".join(sorted(arrays))
    require(family, f"must hold A, A and B, or P and Q, and no other arrays; has {names}")
    width = dim + (family == "full")
    matrices = {}
    for name, array in arrays.items():
        finite = array.dtype.kind in "iuf" and np.isfinite(array).all()
        require(finite, f"{name} must hold finite numbers")
        shaped = array.ndim in (3, 4) and array.shape[-2:] == (width, width) and array.size
        require(shaped, f"{name} must have the shape (layers, {width}, {width}), has {array.shape}")
        alone = array.ndim != 4 or len(array) == 1
        require(alone, f"{name} has {len(array)} seeds; one set of weights at a time")
        matrices[name] = torch.from_numpy(array.astype(np.float64)).reshape(1, *array.shape[-3:])
    depth = len(matrices[min(matrices)][0])
    if family == "sparse_ab":
        effective = max(depth - 1, len(matrices["B"][0]) - 1)  # the last B has no effect
        matrices["B"] = matrices["B"][:, :effective]
    for name, matrix in matrices.items():
        wanted = depth - (name == "B")
        require(len(matrix[0]) == wanted, f"{name} has {len(matrix[0])} layers, must have {wanted}")
    return family, matrices
