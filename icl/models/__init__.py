"""Prompt -> prediction: linear attention over tokens or over Gram matrices, and its parametrizations."""

from icl.models.attention import LinearTransformer
from icl.models.lsa import LSA
from icl.models.parametrizations import (
    Full,
    LinearTransformerBlock,
    MultiHead,
    Parametrization,
    SparseA,
    SparseAB,
    YqLSA,
)

__all__ = [
    "LSA",
    "Full",
    "LinearTransformer",
    "LinearTransformerBlock",
    "MultiHead",
    "Parametrization",
    "SparseA",
    "SparseAB",
    "YqLSA",
]
