import numpy as np
import torch

from icl.checks.giannou.support import iteration


def test_the_sizes_bound_rounding_far_from_convergence_too():
    rng = np.random.default_rng(0)
    A = torch.from_numpy(rng.standard_normal((9, 4)) @ np.diag([1, 0.5, 0.01, 1e-3]))
    problem = iteration.Regression(A, torch.ones(9).double(), torch.ones(4).double(), 0.0)
    for steps in (1, 10, 40):
        its = iteration.Reference.of(problem, steps)
        stack = problem.stack(steps)
        states = stack.every_layer(problem.prompt(stack))
        assert iteration._answer_error(stack, states[-1], its) < 2**-52 * problem.operations()
