"""The posterior mean over finitely many tasks (dMMSE; Raventos et al. 2023).

R replicas, B prompts, K tasks, N context, D covariates, S = D (D + 1) / 2 entries of a symmetric matrix.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from icl.algorithms.coordinates import moments, per_replica
from icl.algorithms.least_squares import contexts_of
from icl.errors import InputError, real
from icl.tasks.prompts import GramPrompt, TokenPrompt

PIECE = 2**21  # squared errors that are in memory at once


class DiscreteMMSE:
    """sum_k p_k <w_k, x>, p_k proportional to exp(-sum_i (<w_k, x_i> - y_i)^2 / (2 label_noise)).

    The least risk of all predictors where w is one of `tasks_RKD`, each with probability 1/K, and labels
    have noise of this variance. Without noise it is the limit: the task of the least squared error. `context`
    is N, or each replica's own. Squared errors are rounded at 1e-15 times the labels' squares: less noise
    than that counts as none.
    """

    def __init__(self, tasks_RKD: Tensor, label_noise: float, context: int | Sequence[int]) -> None:
        if tasks_RKD.ndim != 3 or not tasks_RKD.shape[1]:
            raise InputError(
                f"algorithm.tasks: has shape {tuple(tasks_RKD.shape)}, must have (R, K, D), K >= 1"
            )
        self.tasks_RKD = tasks_RKD.to(torch.float64)
        self.label_noise = real("algorithm.label_noise", label_noise, 0)
        self.context_R = contexts_of(context)

    def predict(self, prompt: GramPrompt | TokenPrompt) -> Tensor:
        prompt = prompt.gram() if isinstance(prompt, TokenPrompt) else prompt
        S_RBDD, g_RBD, x_RBD = moments(prompt, None)
        R, B, D = x_RBD.shape
        if self.tasks_RKD.shape[-1] != D:
            raise InputError(
                f"algorithm.tasks: have {self.tasks_RKD.shape[-1]} entries, prompts {D} covariates"
            )
        tasks_RKD = per_replica("tasks", self.tasks_RKD, R)
        rows, columns = torch.triu_indices(D, D)
        twice_S = 2.0 - (rows == columns).double()
        squares_RSK = (tasks_RKD[..., rows] * tasks_RKD[..., columns] * twice_S).mT
        context_R11 = per_replica("context", self.context_R.double(), R)[:, None, None]
        answers = []
        for piece in torch.arange(B).split(max(1, PIECE // tasks_RKD.shape[1])):
            S_RBS = S_RBDD[:, piece][..., rows, columns]
            # (1/N) times the squared errors, but for the labels' own squares, the same for all tasks
            error_RBK = S_RBS @ squares_RSK - 2 * g_RBD[:, piece] @ tasks_RKD.mT
            outputs_RBK = x_RBD[:, piece] @ tasks_RKD.mT
            if self.label_noise > 0:
                p_RBK = torch.softmax(-context_R11 / (2 * self.label_noise) * error_RBK, -1)
                answers.append((p_RBK * outputs_RBK).sum(-1))
            else:
                answers.append(outputs_RBK.gather(-1, error_RBK.argmin(-1, keepdim=True))[..., 0])
        return torch.cat(answers, 1)
