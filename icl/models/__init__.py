"""Prompt -> prediction: linear attention over tokens or over Gram matrices, and its parametrizations."""

from icl.models.attention import LinearTransformer
from icl.models.parametrizations import Full, MultiHead, Parametrization, SparseA, SparseAB

__all__ = ["Full", "LinearTransformer", "MultiHead", "Parametrization", "SparseA", "SparseAB"]
