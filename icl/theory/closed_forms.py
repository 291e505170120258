"""One layer of linear attention at Sigma = I: ahn's eq. (7). D covariates, N = `context` tokens."""


def isotropic_step(dim: int, context: int) -> float:
    """Eq. (7): A = step I for Sigma = I, step = 1 / ((N - 1)/N + (D + 2)/N)."""
    check_sizes(dim, context)
    return 1 / ((context - 1) / context + (dim + 2) / context)


def isotropic_risk(dim: int, context: int) -> float:
    """Least risk of one layer for Sigma = Sigma_w = I: D (D + 1) / (N + D + 1)."""
    check_sizes(dim, context)
    return dim * (dim + 1) / (context + dim + 1)


def check_context(context: int) -> None:
    """Raise ValueError where there is no token."""
    if context < 1:
        raise ValueError(f"context={context}: must be at least 1")


def check_sizes(dim: int, context: int) -> None:
    """Raise ValueError where there is no token or no covariate."""
    check_context(context)
    if dim < 1:
        raise ValueError(f"dim={dim}: must be at least 1")
