"""Tests of the compiled kernel against the functions it was recorded from."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.kernel import library
from icl.kernel.fused import Fused
from icl.kernel.recording import NotRecordable
from icl.models import (
    LSA,
    Full,
    LinearTransformer,
    LinearTransformerBlock,
    MultiHead,
    ReducedLSA,
    SparseA,
    SparseAB,
    YqLSA,
)
from icl.models.batched import left_matmul, matmul, right_matmul, squared_norm
from icl.models.fused import fused_risk
from icl.random import generator
from icl.tasks import LinearRegression
from icl.tasks.conditioned_regression import ConditionedRegression
from icl.tasks.dynamical_system import DynamicalSystem
from icl.training.estimators import make_estimator
from tests.theory.drawing import draw

pytestmark = pytest.mark.skipif(library.why_none() is not None, reason=f"no kernel: {library.why_none()}")
EXACT = {torch.float64: 1e-12, torch.float32: 1e-5}


def sets() -> tuple[str, ...]:
    return library.instruction_sets() if library.why_none() is None else ()


def near(found, expected, bound):
    return (found - expected).abs().max() <= bound * expected.abs().max()


def value_and_gradients(function, weights, prompts):
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
    value_R = function(leaves, prompts)
    scale_R = torch.arange(1.0, len(value_R) + 1, dtype=value_R.dtype)
    (value_R * scale_R).sum().backward()
    return value_R.detach(), [leaf.grad for leaf in leaves.values()]


def agree(function, weights, prompts, bound, **options):
    """Compare the kernel's values and gradients with those of torch in float64; in single precision within
    ten times torch's own rounding, where a risk of high degree makes that larger than the bound."""
    fused = Fused(function, weights, prompts, **options)
    found = value_and_gradients(fused, weights, prompts)
    double = [{name: tensor.double() for name, tensor in given.items()} for given in (weights, prompts)]
    exact = value_and_gradients(function, *double)
    if next(iter(weights.values())).dtype == torch.float32:
        by_torch = value_and_gradients(function, weights, prompts)
        if not by_torch[0].isfinite().all():  # 1e38 is soon reached by a risk of degree 80
            assert torch.equal(found[0].isfinite(), by_torch[0].isfinite())
            return
        bound = max(bound, 10 * error(by_torch, exact))
    assert error(found, exact) <= bound
    with torch.no_grad():
        assert torch.equal(fused(weights, prompts), found[0])


def error(found, exact):
    """Return the largest error of values and of each gradient, relative to its largest entry."""
    pairs = zip([found[0], *found[1]], [exact[0], *exact[1]], strict=True)
    return max(_relative(own, other) for own, other in pairs)


def _relative(own, other):
    if own is None or other is None:  # of weights without effect torch has none, the kernel 0
        return 0.0 if own is None or not own.any() else 1.0
    return float((own - other).abs().max() / other.abs().max().clamp(min=1e-300))


FAMILIES = {
    "sparse_a": lambda dim, layers: SparseA(dim, layers, 0.3 / layers),
    "sparse_ab": lambda dim, layers: SparseAB(dim, layers, 0.3 / layers),
    "full": lambda dim, layers: Full(dim, layers, 0.3 / layers),
    "heads": lambda dim, layers: MultiHead(dim, layers, 3, 0.3 / layers),
    "yq": lambda dim, layers: YqLSA(dim, layers, 0.3 / layers),
    "reduced": lambda dim, layers: ReducedLSA(dim, layers, 0.3 / layers),
    "ltb": lambda dim, layers: LinearTransformerBlock(dim, layers, 2, 0.3 / layers),
}


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("estimator", ["expected", "sampled", "tilted"])
@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=12, deadline=None)
@given(
    dim=st.integers(1, 6),
    layers=st.integers(1, 4),
    context=st.integers(1, 9),
    replicas=st.integers(1, 3),
    batch=st.integers(1, 40),
    noise=st.booleans(),
    read_out=st.sampled_from([-1, 1]),
    seed=st.integers(0, 10**6),
)
def test_every_family_of_linear_regression(
    name, estimator, dtype, dim, layers, context, replicas, batch, noise, read_out, seed
):
    if dtype == torch.float32:
        layers = min(layers, 2)  # deeper tilted risks are large, and single precision has few digits left
    seeds = range(seed, seed + replicas)
    law = LinearRegression(dim, context, label_noise=0.3 * noise, read_out=read_out).law(seeds)
    family = FAMILIES[name](dim, layers)
    family.initialise(seeds, dtype)
    of_family(make_estimator(estimator, LinearTransformer(family), law), family, batch, dtype, seeds)


def of_family(estimator, family, batch, dtype, seeds):
    """Return the estimator, whose constants have the precision of the weights: float64 is another
    estimator."""
    model = LinearTransformer(family)
    draw = estimator.draw([generator(seed, "train", 0) for seed in seeds], batch)
    draw = {name: tensor.to(dtype) for name, tensor in draw.items()}
    weights = family.matrices()

    def risk(weights, draw):
        matrices = [weights[name] for name in family.shapes()]
        precision = next(iter(draw.values())).dtype
        estimator.to(getattr(precision, "is_floating_point", True) and precision)
        return estimator.risk(model.on(family.sharing(matrices)), draw)

    detached = {name: tensor.detach() for name, tensor in weights.items()}
    agree(risk, detached, draw, EXACT[dtype])


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("estimator", ["expected", "sampled"])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("heads", "width", "rank"), [(1, None, None), (3, 7, None), (3, None, 1), (2, None, 2)]
)
@pytest.mark.parametrize("layers", [1, 3])
def test_giannous_gram_form(estimator, constant, heads, width, rank, layers, dtype):
    family = LSA(3, layers, heads, width, mask=True, init_std=0.1 / layers, rank=rank)
    family.initialise([0, 1], dtype)
    law = ConditionedRegression(dim=3, constant=constant).law([0, 1])
    of_family(make_estimator(estimator, LinearTransformer(family), law), family, 21, dtype, [0, 1])


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("window", [1, 4])
def test_sequences_whose_risk_is_half_the_squared_error(window, dtype):
    family = Full(window, 2, 0.3)
    family.initialise([0, 1], dtype)
    law = DynamicalSystem(dim=2, length=12, window=window).law([0, 1])
    of_family(make_estimator("sampled", LinearTransformer(family), law), family, 33, dtype, [0, 1])


def random_program(rng, replicas, batch):
    """Return a function of the recorder's operations on matrices of random sizes, its weights and prompts."""
    sizes = [int(n) for n in rng.integers(1, 12, 3)]
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))

    def drawn(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64) / 3

    both = [(f"{i}{j}", n, m) for i, n in enumerate(sizes) for j, m in enumerate(sizes)]
    weights = {name: drawn(replicas, n, m) for name, n, m in both}
    prompts = {name: drawn(replicas, n, m, batch) for name, n, m in both}
    prompts["weight"] = drawn(replicas, batch).abs()
    constant = drawn(replicas, sizes[0], sizes[1])
    steps = [(int(rng.integers(9)), *(int(k) for k in rng.integers(0, 3, 3))) for _ in range(10)]

    def function(weights, prompts):
        made = {(i, j): prompts[f"{i}{j}"] for i in range(3) for j in range(3)}
        for kind, i, j, k in steps:
            X, Y = made[i, k], made[k, j]
            if kind == 0:
                made[i, j] = matmul(X, Y)
            elif kind == 1:
                made[i, j] = matmul(X, Y, made[i, j])
            elif kind == 2:
                made[i, j] = left_matmul(weights[f"{i}{k}"], Y) + made[i, j]
            elif kind == 3:
                made[i, j] = made[i, j] - right_matmul(X, weights[f"{k}{j}"] @ weights[f"{j}{j}"])
            elif kind == 4:
                made[j, i] = made[i, j].transpose(1, 2) * 0.5 + made[j, i]
            elif kind == 5:
                made[i, j] = made[i, j] * made[i, j] - 2 * weights[f"{i}{j}"][..., None]
            elif kind == 6:
                cut = made[i, j][:, 1:, :-1]
                made[i, j] = torch.nn.functional.pad(cut, (0, 0, 0, 1, 1, 0)) + made[i, j]
            elif kind == 7:
                made[i, j] = matmul(made[i, i], made[i, j], made[i, j])
            else:
                made[0, 1] = made[0, 1] + constant.to(made[0, 1].dtype)[..., None]
        total = sum(squared_norm(M) for M in made.values())
        total = total + left_matmul(weights["00"], made[0, 0]).sum(2).square().sum(1)
        return (prompts["weight"] * total).mean(-1) / 3

    return function, weights, prompts


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**9), replicas=st.integers(1, 3), batch=st.integers(1, 37), which=st.integers(0, 9)
)
def test_random_programs(seed, replicas, batch, which):
    given = random_program(np.random.default_rng(seed), replicas, batch)
    agree(*given, 1e-12, instructions=sets()[which % len(sets())])


@pytest.mark.parametrize("size", [9, 16, 31, 32])
def test_larger_matrices(size):
    A, S = draw(size, 2, size, size), draw(size + 1, 2, size, size, 11)

    def risk(weights, prompts):
        moved = right_matmul(prompts["S"], weights["A"])
        return squared_norm(matmul(moved, prompts["S"].transpose(1, 2), moved)).mean(-1)

    agree(risk, {"A": A / size}, {"S": S / size}, 1e-12)


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(65, 3, 128), (128, 65, 2), (3, 127, 66), (97, 97, 1)]
)
def test_matrices_of_more_than_64_rows_or_columns(rows, inner, columns, dtype):
    A, S, B = draw(1, 2, rows, inner), draw(2, 2, inner, inner, 18), draw(3, 2, inner, columns)

    def risk(weights, prompts):
        return squared_norm(right_matmul(left_matmul(weights["A"], prompts["S"]), weights["B"])).mean(-1)

    weights = {"A": (A / rows).to(dtype), "B": (B / columns).to(dtype)}
    for name in sets():
        agree(risk, weights, {"S": S.to(dtype)}, EXACT[dtype], instructions=name)


def test_matrices_beyond_the_limit_are_refused():
    weights, prompts = {"A": torch.ones(1, 129, 2)}, {"S": torch.ones(1, 2, 2, 3)}
    with pytest.raises(NotRecordable, match="a matrix with more than 128 rows or columns"):
        Fused(lambda w, p: squared_norm(left_matmul(w["A"], p["S"])).mean(-1), weights, prompts)


@pytest.mark.parametrize("instructions", ["baseline", "avx2", "avx512"])
def test_every_remainder_of_the_batch(instructions):
    """Compare two blocks and every number of prompts beyond."""
    if instructions not in sets():
        pytest.skip(f"this processor or compiler has no {instructions}")
    for dtype, lanes in ((torch.float64, 8), (torch.float32, 16)):
        for batch in [*range(1, lanes + 2), *range(2048, 2048 + lanes)]:
            agree(*quadratic(batch, dtype), EXACT[dtype], instructions=instructions)


def quadratic(batch, dtype=torch.float64, replicas=2):
    weights = {"A": draw(batch, replicas, 3, 3).to(dtype)}
    prompts = {"S": draw(batch + 1, replicas, 3, 3, batch).to(dtype)}

    def function(weights, prompts):
        moved = right_matmul(prompts["S"], weights["A"])
        return squared_norm(matmul(moved, prompts["S"], moved)).mean(-1)

    return function, weights, prompts


@pytest.mark.parametrize("dtype", EXACT)
def test_no_bit_depends_on_the_number_of_threads(dtype):
    function, weights, prompts = quadratic(9001, dtype, replicas=3)
    fused = Fused(function, weights, prompts)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 4):
            torch.set_num_threads(threads)
            found.append(value_and_gradients(fused, weights, prompts))
    finally:
        torch.set_num_threads(before)
    for value, gradients in found[1:]:
        assert torch.equal(value, found[0][0])
        assert all(torch.equal(a, b) for a, b in zip(gradients, found[0][1], strict=True))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e160, -1e200, 1e308])
@pytest.mark.parametrize("batch", [1, 8, 13, 24])
@pytest.mark.parametrize("where", ["weights", "prompts"])
def test_what_is_no_number_stays_in_its_replica(where, batch, bad):
    function, weights, prompts = quadratic(batch, replicas=3)
    if where == "weights":
        weights["A"][1, 1, 1] = bad
    else:
        prompts["S"][1, 0, 2, batch - 1] = bad
    found, gradients = value_and_gradients(Fused(function, weights, prompts), weights, prompts)
    expected, others = value_and_gradients(function, weights, prompts)
    assert torch.equal(found.isfinite(), expected.isfinite()) and not found[1].isfinite()
    assert where == "weights" or torch.equal(found.isnan(), expected.isnan())
    for own, other in zip(gradients, others, strict=True):
        finite = [gradient.isfinite().all((1, 2)) for gradient in (own, other)]
        assert torch.equal(*finite) and own[[0, 2]].isfinite().all()
        assert where == "weights" or torch.equal(own.isfinite(), other.isfinite())
        assert near(own[[0, 2]], other[[0, 2]], 1e-12)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda w, p: squared_norm(left_matmul(w["A"], p["S"]).exp()).mean(-1), "exp"),
        (lambda w, p: squared_norm(left_matmul(w["A"], p["S"])).sum(-1), "sum over replicas or prompts"),
        (lambda w, p: squared_norm(left_matmul(w["A"], p["S"])), "no mean over the prompts"),
        (lambda w, p: squared_norm(w["A"][..., None]).mean(-1), "does not depend on the prompts"),
        (lambda w, p: squared_norm(left_matmul(w["A"].flip(0), p["S"])).mean(-1), "flip"),
        (lambda w, p: squared_norm(left_matmul(w["A"][[1, 0]], p["S"])).mean(-1), "not treated alike"),
        (lambda w, p: squared_norm(matmul(p["S"][:, :2], p["S"])).mean(-1) / p["S"].shape[-1], None),
        (lambda w, p: squared_norm(p["S"]).mean(-1) * w["A"][:, 0, 0], "mean over prompts"),
        (lambda w, p: squared_norm(left_matmul(w["A"], p["S"]) / p["S"]).mean(-1), "a quotient of tensors"),
        (lambda w, p: torch.relu(squared_norm(p["S"])).mean(-1), "relu"),
    ],
)  # fmt: skip
def test_what_cannot_be_recorded_is_refused_with_a_reason(function, reason):
    _, weights, prompts = quadratic(5)
    if reason is None:
        Fused(function, weights, prompts)
    else:
        with pytest.raises(NotRecordable, match=reason):
            Fused(function, weights, prompts)


def test_a_recording_that_differs_from_its_function_is_refused():
    """Record with one prompt, which cannot show what depends on their number."""
    family = SparseA(2, 1, 0.3)
    family.initialise([0])
    model = LinearTransformer(family)

    def risk(model, draw):
        A, _ = model.parametrization.sparse_weights()
        return squared_norm(right_matmul(draw["S"], A[:, 0])).mean(-1) * draw["S"].shape[-1]

    draw = {"S": torch.ones(1, 2, 2, 4, dtype=torch.float64)}
    with pytest.raises(NotRecordable, match="differ"):
        fused_risk(risk, model, draw)


def test_other_tensors_than_those_recorded_are_refused():
    function, weights, prompts = quadratic(8)
    fused = Fused(function, weights, prompts)
    for wrong in ({"S": prompts["S"][:, :2]}, {"S": prompts["S"].float()}, {"S": prompts["S"][:1]}):
        with pytest.raises(ValueError, match="other than was recorded"):
            fused(weights, wrong)
