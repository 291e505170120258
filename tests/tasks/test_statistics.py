import itertools

import torch

from icl.tasks.estimators import norm_and_stderr
from tests.theory.drawing import draw


def chunks(mean, repeats, chunks=50):
    return mean + draw(1, chunks, repeats, len(mean))


def test_the_square_is_the_mean_over_pairs_of_chunks_and_the_error_the_jackknifes():
    grad_CRK = chunks(torch.tensor([3.0, 4.0], dtype=torch.float64), 6, chunks=5)

    def square(grad):
        return torch.stack([(x * y).sum(-1) for x, y in itertools.permutations(grad, 2)]).mean(0)

    norm_R, stderr_R = norm_and_stderr(grad_CRK)
    torch.testing.assert_close(norm_R**2, square(grad_CRK))
    without = torch.stack([square(torch.cat([grad_CRK[:c], grad_CRK[c + 1 :]])) for c in range(5)])
    s_R = (without.var(0, correction=0) * 4).sqrt()
    torch.testing.assert_close(stderr_R, (norm_R**2 + s_R).sqrt() - norm_R)


def test_a_vanishing_gradient_has_no_vanishing_error():
    norm_R, stderr_R = norm_and_stderr(chunks(torch.zeros(3, dtype=torch.float64), 1000))
    assert bool((stderr_R > 0).all())
    assert float(((norm_R / stderr_R) < 3).double().mean()) > 0.98


def test_one_chunk_is_exact():
    norm_R, stderr_R = norm_and_stderr(torch.tensor([[[3.0, 4.0]]]))
    assert (float(norm_R), float(stderr_R)) == (5, 0)
