from random import Random

from flint import arb_mat, fmpq

from icl.theory.giannou import phases
from icl.theory.giannou.inexact import SETTLED, Runs, error_allowed
from icl.theory.giannou.logistic import direction, draw, minimum, norm


def test_runs_take_the_worst_of_three_errors():
    loss = draw(Random(2), 6, 2, fmpq(1, 5))
    start = loss.at(minimum(loss) + direction(Random(3), 2) / 10)
    run = Runs()
    run.follow(start, Random(4))
    assert (len(run.ratios), len(run.gaps)) == (SETTLED, 1)
    eps, stepped = error_allowed(start), start.x + start.move
    drawn = arb_mat(direction(Random(4), 2))
    gradient = loss.at(stepped).gradient
    ends = [loss.at(stepped + way * (eps / norm(way))) for way in (gradient, drawn, -drawn)]
    worst = max((end.scaled_decrement for end in ends), key=float)
    bound = 3 * start.scaled_decrement**2 + phases.constant_times_error(loss.mu, eps)
    assert abs(run.ratios[0] - worst / bound) < 1e-12
    assert abs(eps - fmpq(4, 500) / (1 + norm(start.x) / 5)) < 1e-15 and run.wrong[0] > 2
    far = Runs()
    far.follow(loss.at(20 * direction(Random(5), 2)), Random(4))
    assert len(far.ratios) == SETTLED  # phase one is not counted
