"""Which head takes linear attention without a mask below the scalar family: the one that reads the label.

Rotations leave heads that are multiples of the identity on the blocks x and y of a token: without a mask a
layer is I + C o G on tokens and query, G the second moments of context and query, C an entry for each pair of
blocks. The scalar family has C_xx and C_yx. Added to it: C_yy, which scales labels by c |y|^2 / n.
B prompts, L layers, D covariates, P = D + 1.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from icl.checks.statement import UNREFUTED, Measured, Sample, Statement, setting, sign
from icl.errors import whole
from icl.random import generator
from icl.theory.blurred import Undecided
from icl.theory.giannou.own_token import triangles

FRESH = 30  # prompts that heads are judged on, for each that they are fitted on
# which entries of C are free: row for the block that is written, column for the one that is read
SCALARS, WITH_LABEL = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
ITERATIONS = 100


@dataclass
class LabelHead(Statement):
    dim: int = setting(5, 1, most=16, beyond="the fits take minutes")
    context: int = setting(25, 2, most=1000, beyond="the fits take minutes")
    layers: int = setting(2, 2, most=3, beyond="the fits take minutes")
    samples: int = setting(3000, 500, most=20_000, beyond="the fits take minutes")  # prompts of a fit
    seed: int = setting(0, 0)

    paper, where = "giannou", "icl, beside section 6 and eq. (3.1a) without a mask"
    title = "Layers without a mask: the head that reads the label"
    origin = "icl"
    law = "x ~ N(0, I), w ~ N(0, I), n examples, y = w.x; the query among the tokens"
    claim = (
        "Without a mask, a head that reads the label, T_yy = c |y|^2 / n, lowers the loss of as many layers "
        "of the scalar family."
    )
    formula = "T_{yy} = c |y|^2 / n"
    tries = 0  # a fit is a search, which few prompts do not decide

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("check.context", self.context, self.dim + 1)

    def expected(self) -> str:
        known = self.layers == 2 and self.samples >= 3000 and (self.dim, self.context) == (5, 25)
        return "holds" if known else UNREFUTED

    def measure(self, m: Measured) -> None:
        few = drawn(generator(self.seed, "search"), self.dim, self.context, self.samples)
        fresh = drawn(generator(self.seed, "check"), self.dim, self.context, FRESH * self.samples)
        start = torch.tensor([[-0.4, 0.0], [-0.5, 0.0]], dtype=torch.float64).repeat(self.layers, 1, 1)
        scalars = fitted(SCALARS, few, start, -1.0)
        label = fitted(WITH_LABEL, few, *scalars)
        turned_L22 = label[0].clone()
        turned_L22[:, 1, 1] *= -1
        plain_B, label_B = (losses(*of, fresh).numpy() for of in (scalars, label))
        if sign(gain := Sample.of(plain_B - label_B)) == -1:
            raise Undecided("on other prompts the head fitted is worse than none: check.samples takes more")
        turned_B = losses(turned_L22, label[1], fresh).numpy()
        about = "loss of the scalar layers fitted less that with the head T_yy, on the same prompts"
        m.positive("gain", gain, about)
        m.control("the same with the sign of that head turned", Sample.of(plain_B - turned_B), of="gain")
        m.note(
            "Heads are fitted on the same prompts and judged on others. Scalar and free heads differ by a "
            "scale that depends on |y|^2 / n, an estimate of |w|^2."
        )


class Prompts(NamedTuple):
    gram_BPP: Tensor  # second moments of the tokens, the query among them with label 0
    query_BP: Tensor
    target_B: Tensor


def drawn(rng: np.random.Generator, dim: int, context: int, samples: int) -> Prompts:
    L_BDD = triangles(rng, samples, context, dim)
    w_BD, x_BD = rng.standard_normal((2, samples, dim))
    rows_BPD = np.concatenate([L_BDD, (w_BD[:, None] @ L_BDD)], 1)
    query_BP = np.concatenate([x_BD, np.zeros((samples, 1))], 1)
    gram_BPP = (rows_BPD @ rows_BPD.swapaxes(1, 2) + query_BP[:, :, None] * query_BP[:, None]) / context
    return Prompts(*map(torch.from_numpy, (gram_BPP, query_BP, (w_BD * x_BD).sum(1))))


def losses(C_L22: Tensor, read_out: float | Tensor, prompts: Prompts) -> Tensor:
    """Return squared errors over d, (B,)."""
    gram_BPP, query_BP, target_B = prompts
    D = query_BP.shape[1] - 1
    block_P = torch.tensor([0] * D + [1])
    for left, C_22 in zip(reversed(range(len(C_L22))), C_L22, strict=True):
        T_BPP = C_22[block_P][:, block_P] * gram_BPP
        query_BP = query_BP + (T_BPP @ query_BP[..., None])[..., 0]
        if left:
            move_BPP = torch.eye(D + 1, dtype=T_BPP.dtype) + T_BPP
            gram_BPP = move_BPP @ gram_BPP @ move_BPP.mT
    return (read_out * query_BP[:, D] - target_B).square() / D


def fitted(free_22: Tensor, prompts: Prompts, start_L22: Tensor, read_out: float) -> tuple[Tensor, float]:
    """Return C and the read-out of least loss on these prompts, other entries of C than the free ones 0."""

    def weights(theta: Tensor) -> tuple[Tensor, Tensor]:
        return free_22 * theta[:-1].view_as(start_L22), theta[-1]

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        theta = torch.from_numpy(point).requires_grad_()
        loss = losses(*weights(theta), prompts).mean()
        return loss.item(), torch.autograd.grad(loss, theta)[0].numpy()

    begin = np.array([*start_L22.flatten().tolist(), read_out])
    run = minimize(objective, begin, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": ITERATIONS})
    C_L22, last = weights(torch.from_numpy(run.x))
    return C_L22, float(last)
