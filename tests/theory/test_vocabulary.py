"""The public quantities of icl.theory: each row of its page, and risks by definition."""

import re
from pathlib import Path

import pytest
from flint import fmpq

import icl.theory
from icl.theory import Formula, Law, gradient, hessian, identity, limit, minimise, risk
from tests.theory.test_definitions import Numbers, dot, some, times

PAGE = (Path(__file__).parents[2] / "docs" / "vocabulary.md").read_text("utf-8")
ROWS = re.findall(r"^\| (.+?) \| .* \| `(.+)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("example", [example for _, example in ROWS])
def test_an_example_of_the_page_is_true(example):
    assert eval(example, vars(icl.theory).copy()) is True


def test_the_page_has_every_public_name():
    assert {name for names, _ in ROWS for name in re.findall(r"`(\w+)", names)} == set(icl.theory.__all__)


def risk_by_definition(A, root, n, task_root, noise_root, test_root) -> fmpq:
    """Return E (x_q.(w - w_L))^2: labels with noise go through the layers, token by token."""
    d = root.nrows()
    numbers = Numbers(d * (n + 2) + n)
    w, query = times(task_root, numbers.draw(d)), times(test_root, numbers.draw(d))
    tokens, noise = [times(root, numbers.draw(d)) for _ in range(n)], numbers.draw(n)
    labels, left = [dot(w, x) + noise_root * e for x, e in zip(tokens, noise, strict=True)], w
    for a in A:
        row = [sum(y * x[i] for y, x in zip(labels, tokens, strict=True)) / fmpq(n) for i in range(d)]
        move = [dot(row, [a[i, j] for i in range(d)]) for j in range(d)]
        labels = [y - dot(move, x) for y, x in zip(labels, tokens, strict=True)]
        left = [e - m for e, m in zip(left, move, strict=True)]
    return numbers.mean(dot(left, query) ** 2)


@pytest.mark.parametrize(("d", "n", "layers"), [(1, 2, 1), (1, 2, 2), (2, 1, 1), (2, 2, 1)])
def test_a_risk_is_its_definition(d, n, layers):
    root, task, test = (some(k, d, d) + 2 * identity(d) for k in (1, 4, 6))
    A = [some(layer + 2, d, d) / 4 for layer in range(layers)]
    squares = [x * x.transpose() for x in (root, task, test)]
    found = risk(A, Law(squares[0], n, squares[1], fmpq(9, 4), squares[2]))
    assert found == risk_by_definition(A, root, n, task, fmpq(3, 2), test)
    assert found != risk(A, Law(squares[0], n, squares[1], fmpq(9, 4)))


def test_risks_of_numbers_are_those_of_matrices():
    layers, law = [fmpq(1, 3), fmpq(1, 2), fmpq(2)], Law(2, 3, noise=2)
    assert risk(layers, law) == risk([a * identity(2) for a in layers], law)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: gradient(lambda a: a**3, [1]), "not a polynomial of degree 2"),
        (lambda: hessian(lambda a: 1 / a, [1]), "not a polynomial"),
        (lambda: limit(lambda n: fmpq(2) ** n), "not a rational function"),
        (lambda: minimise(lambda a, b: a * a - b * b, [0, 0]), "no minimum is proved"),
        (lambda: minimise(lambda a, b, c: 2 * a * c - b * b, [0, 0, 0]), "no minimum is proved"),
        (lambda: minimise(lambda a: a**4, [0]), "no minimum is proved"),  # not strict to second order
        (lambda: risk([1], Law(-3, 5)), "-3: is no covariance"),
        (lambda: risk([1], Law([[1, 2], [0, 1]], 5)), "symmetric"),
        (lambda: risk([1], Law([[1, 2], [2, 1]], 5)), "no eigenvalue below 0"),
        (lambda: risk([1], Law(3, 5, task=[1, -1, 1])), "no eigenvalue below 0"),
        (lambda: risk([1], Law(3, 5, test=2)), "different dimensions"),
        (lambda: Law(3, 0), "n is 1 at least"),
        (lambda: Law(3, 5, noise=-1), "noise 0"),
        (lambda: Formula("d*x", {"d": 1}).value(), "x is none of d"),
        (lambda: Formula("d*", {"d": 1}), "is no formula"),
    ],
)
def test_what_is_out_of_range_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_a_minimum_is_where_the_gradient_is_0():
    def f(a, b):
        return risk([a, b], Law(3, 10))

    near = [x.mid().fmpq() for x in minimise(f, [0.5, 1]).x]
    assert max(map(abs, gradient(f, near))) < fmpq(1, 10**9) and hessian(f, near).det() > 0
    assert limit(lambda n: fmpq(3 * n * n, n + 1)) == (1, 3) and limit(lambda n: fmpq(0)) == (0, 0)
    beside = [("d + 1 for d", 10), ("d**2 + 2 for it", 6), ("d**3 + 1 for it", 9)]
    assert list(Formula("d**2 + 1", {"d": 2}).beside()) == beside
    assert [value for _, value in Formula("(κ +\n 1)*2", {"κ": 2}).beside()] == [8, 9, 8]
