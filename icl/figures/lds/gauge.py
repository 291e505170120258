"""Weights of one layer on AR(s) tokens in one gauge, and their supports against pattern (13).

With c W_V and W_QK / c the layer predicts the same, and for s = 1 it does with b and a_1 exchanged. They are
brought to |b| = |a|, the last entry of b that is not small positive, and for s = 1 to the mirror whose b has
its larger entry last. b is W_V's last column, a_k row k of W_QK; only these have an effect.
X leading axes, K = s query entries, P = s + 1.
"""

import numpy as np

from icl.tasks.sequence_moments import parity_mask

TOLERANCE = 0.1  # appendix B.3: entries below are zero


def canonical(b_XP: np.ndarray, a_XKP: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(b, a) in this gauge."""
    sizes_X = [np.sqrt(np.square(part).sum(axes)) for part, axes in ((b_XP, -1), (a_XKP, (-2, -1)))]
    zero_X = sizes_X[0] * sizes_X[1] == 0
    scale_X = np.sqrt(np.where(zero_X, 1.0, sizes_X[1]) / np.where(zero_X, 1.0, sizes_X[0]))
    b_XP, a_XKP = b_XP * scale_X[..., None], a_XKP / scale_X[..., None, None]
    if a_XKP.shape[-2] == 1:
        mirrored_X1 = np.abs(b_XP[..., :1]) > np.abs(b_XP[..., 1:])
        b_XP, a_XP = (
            np.where(mirrored_X1, *pair) for pair in ((a_XKP[..., 0, :], b_XP), (b_XP, a_XKP[..., 0, :]))
        )
        a_XKP = a_XP[..., None, :]
    counted_XP = supports(b_XP[..., None], relative=True)[..., ::-1, 0]
    last_X1 = np.take_along_axis(b_XP[..., ::-1], counted_XP.argmax(-1)[..., None], -1)
    sign_X1 = np.where(last_X1 < 0, -1.0, 1.0)
    return b_XP * sign_X1, a_XKP * sign_X1[..., None]


def masks(window: int) -> tuple[np.ndarray, np.ndarray]:
    """(13): the free entries of W_V's last column (P,) and of W_QK's rows 1 .. s (K, P)."""
    mask_P, mask_PP = parity_mask(window)
    return mask_P.numpy(), mask_PP[:window].numpy()


def supports(M_XIJ: np.ndarray, relative: bool) -> np.ndarray:
    """Entries not below TOLERANCE, of 1 or of the largest of each matrix."""
    sizes_XIJ = np.abs(M_XIJ)
    return sizes_XIJ >= TOLERANCE * (sizes_XIJ.max((-2, -1), keepdims=True) if relative else 1.0)


def jaccard(support_XIJ: np.ndarray, mask_IJ: np.ndarray) -> np.ndarray:
    """Eq. (20), over the last two axes."""
    both_X = (support_XIJ & mask_IJ).sum((-2, -1))
    either_X = (support_XIJ | mask_IJ).sum((-2, -1))
    return 1 - both_X / either_X


def outside(b_P: np.ndarray, a_KP: np.ndarray) -> float:
    """Return the largest entry outside (13), as a share of the largest of its matrix."""
    pairs = zip(map(np.abs, (b_P, a_KP)), masks(len(a_KP)), strict=True)
    return max(float(M[~mask].max() / M.max()) for M, mask in pairs)
