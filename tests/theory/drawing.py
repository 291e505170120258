"""Random matrices of tests, each a function of its seed."""

import torch


def draw(seed, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def eye(dim):
    return torch.eye(dim, dtype=torch.float64)


def covariance(seed, dim):
    factor = draw(seed, dim, dim)
    return factor @ factor.T / dim + 0.2 * eye(dim)
