"""Random streams: a generator is a function of (seed, role, step) and of nothing else.

Roles keep disjoint what must not share numbers; a replica's stream does not depend on which replicas share
its batch, nor on device, thread count or what was drawn before.
"""

import numpy as np

ROLES = ("task", "init", "train", "eval", "search", "check", "control", "bootstrap", "sweep")


def generator(seed: int, role: str, step: int = 0, rank: int | None = None) -> np.random.Generator:
    """Return the stream of one (seed, role, step), or of one process's share of it; NumPy's SeedSequence
    keeps different keys independent."""
    key = (ROLES.index(role), step) if rank is None else (ROLES.index(role), step, rank)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
