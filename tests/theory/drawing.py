"""Random matrices for the tests of theory, each a function of its seed."""

import torch


def draw(seed, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def eye(dim):
    return torch.eye(dim, dtype=torch.float64)


def covariance(seed, dim):
    factor = draw(seed, dim, dim)
    return factor @ factor.T / dim + 0.2 * eye(dim)


def within(sample, exact, errors=4.0):
    """Return whether the sample's mean is so near, in standard errors."""
    return abs(float(sample.mean()) - float(exact)) < errors * float(sample.std()) / len(sample) ** 0.5


def loss_on_gram_matrices(stack, Sigma, Sigma_w, context, seed, prompts=60_000):
    """Return squared errors of a linear stack [(P, Q), ...] run on the Gram matrices of sampled prompts:
    each layer moves the query and G by I + P G Q. The query's label is hidden and the target minus it, as
    ahn has it."""
    D = len(Sigma)
    x = draw(seed, prompts, context + 1, D) @ torch.linalg.cholesky(Sigma).T
    w = draw(seed + 1, prompts, D) @ torch.linalg.cholesky(Sigma_w).T
    z = torch.cat([x, x @ w.unsqueeze(-1)], -1)
    tokens, query, target = z[:, :context], z[:, context].clone(), -z[:, context, D]
    query[:, D] = 0
    G = tokens.mT @ tokens / context
    for P, Q in stack:
        step = eye(D + 1) + P @ G @ Q
        query, G = (step @ query.unsqueeze(-1)).squeeze(-1), step @ G @ step.mT
    return (query[:, D] - target).square()
