"""Fixtures of runs as small as a run can be."""

import numpy as np
import pytest

EXPERIMENT, FINGERPRINT, DIGEST = "ahn/theorem3", "0123456789ab", "d1"


@pytest.fixture
def begin():
    """Return `begin(store)` with the one experiment of these tests; keywords as in RunStore.begin."""

    def start(store, digest=DIGEST, config=None, **options):
        return store.begin(EXPERIMENT, FINGERPRINT, config or {"task": {"dim": 5}}, digest, **options)

    return start


@pytest.fixture
def finish():
    """Return `finish(run, value)`: a finished record whose every array and metric shows `value`."""

    def end(run, value=1.0, **options):
        return run.finish(
            metrics=[{"step": 0, "seed": 0, "loss": value}, {"step": 10, "seed": 0, "loss": value / 3}],
            weights={"A": np.full((1, 3, 5, 5), value), "Sigma": np.eye(5)[None]},
            summary={"loss": {"mean": value, "by_seed": {"0": value}}},
            steps=10,
            seeds=[0],
            **options,
        )

    return end
