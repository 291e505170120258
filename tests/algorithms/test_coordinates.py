import torch

from icl.algorithms.coordinates import moments, whitening
from icl.random import generator
from icl.tasks import LinearRegression

LAW = LinearRegression(5, 8, task_covariance="inverse", label_noise=0.3).law([0, 1])


def tokens(batch=6):
    return LAW.token_prompts([generator(seed, "check") for seed in (0, 1)], batch)


def test_moments_are_those_of_transformed_tokens():
    prompt = tokens()
    x, y = prompt.context_RBNP[..., :-1], prompt.context_RBNP[..., -1]
    C = whitening(LAW.Sigma_RDD)
    u = torch.stack([x[r] @ C[r] for r in range(2)])
    S, g, x_q = moments(prompt, C)
    torch.testing.assert_close(S, torch.einsum("rbni,rbnj->rbij", u, u) / 8, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(g, torch.einsum("rbni,rbn->rbi", u, y) / 8, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(x_q[1], prompt.query_RBP[1, :, :-1] @ C[1], rtol=1e-12, atol=1e-13)
    assert moments(prompt.to(torch.float32), None).S_RBDD.dtype == torch.float64


def test_whitening_whitens():
    C = whitening(LAW.Sigma_RDD)
    identity = torch.eye(5, dtype=torch.float64).expand(2, 5, 5)
    torch.testing.assert_close(C.mT @ LAW.Sigma_RDD @ C, identity, rtol=0, atol=1e-13)
    assert whitening(None) is None
