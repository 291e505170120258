"""Train three layers (half a minute; seconds with the argument `smoke`), predict on own data, and compare."""

import sys

import numpy as np

import icl

isotropic = {"task.covariance": "identity", "seeds": [0, 1]}  # the distribution of the data below
found = icl.train("ahn/theorem3", logger="none", scale=[*sys.argv, "laptop"][1], **isotropic)
model = icl.load_run(found["run_dir"]).model
rng = np.random.default_rng(7)
w, x, x_query = rng.standard_normal(5), rng.standard_normal((20, 5)), rng.standard_normal(5)
y, truth = x @ w, w @ x_query
least_squares = np.linalg.lstsq(x, y, rcond=None)[0] @ x_query
note = " (smoke: training is too short for good predictions)" if "smoke" in sys.argv else ""
for seed, prediction in zip([0, 1], model(x, y, x_query).tolist(), strict=True):
    print(f"seed {seed}: {prediction:.3f}, least squares: {least_squares:.3f}, truth: {truth:.3f}{note}")
