"""Prompt -> prediction: linear attention over tokens or over Gram matrices, and encoders."""

from icl.models.attention import LinearTransformer
from icl.models.encoder import Encoder
from icl.models.lsa import LSA
from icl.models.matrices import Matrices
from icl.models.parametrizations import (
    Full,
    LinearTransformerBlock,
    MultiHead,
    Parametrization,
    ReducedLSA,
    SparseA,
    SparseAB,
    YqLSA,
)
from icl.models.transformer import Transformer

__all__ = [
    "LSA",
    "Encoder",
    "Full",
    "LinearTransformer",
    "LinearTransformerBlock",
    "Matrices",
    "MultiHead",
    "Parametrization",
    "ReducedLSA",
    "SparseA",
    "SparseAB",
    "Transformer",
    "YqLSA",
]
