"""Compare what the page computes, in a browser and in node, with the library at random settings."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from icl.config.search_path import ConfigDirs
from icl.jobs.stored.report import papers
from icl.report.page import write_report
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.closed_forms import theorem1_preconditioner, theorem1_risk
from icl.theory.xie.initial_guess import gap, lost_slope
from tests.report.browser import Browser
from tests.report.conftest import check, content

SOURCE = Path(__file__).parents[2] / "icl/report/compute.js"
ACCURACY = 1e-12
Evaluate = Callable[[str], Any]


@pytest.fixture
def opened(tab: Browser, tmp_path: Path) -> Browser:
    """Open a page with the closed forms of the papers."""
    shipped = papers(["ahn", "xie"], ConfigDirs())
    entries = [check(f"{paper.id}/theorem1") for paper in shipped]
    tab.open(write_report(tmp_path / "report", content(*entries, papers=shipped)))
    return tab


def in_browser(tab: Browser) -> Evaluate:
    return lambda expression: json.loads(tab.run(f"JSON.stringify({expression})"))


def in_node() -> Evaluate:
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        pytest.skip("no node is installed")

    def evaluate(expression: str) -> Any:
        script = f"{SOURCE.read_text()}\nconsole.log(JSON.stringify({expression}));"
        return json.loads(subprocess.run([node, "-e", script], capture_output=True, check=True).stdout)

    return evaluate


@pytest.fixture(params=[pytest.param("browser", marks=pytest.mark.chromium), "node"])
def evaluate(request: pytest.FixtureRequest) -> Evaluate:
    if request.param == "node":
        return in_node()
    return in_browser(request.getfixturevalue("opened"))


def settings(count: int) -> list[tuple[np.ndarray, int]]:
    """Random covariances of every dimension to 8, and contexts shorter and longer than it."""
    rng, found = np.random.default_rng(28), []
    for index in range(count):
        d = index % 8 + 1
        root = rng.standard_normal((d, d + 1))
        spread = np.exp(rng.uniform(-2, 2, d))
        covariance = spread[:, None] * (root @ root.T) * spread
        found.append(((covariance + covariance.T) / 2, int(rng.choice([1, 2, rng.integers(3, 5000)]))))
    return found


def off(found: Any, wanted: Any) -> float:
    """Return the largest difference, as a share of the largest entry."""
    wanted = np.asarray(wanted)
    return float(np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max())


def test_eq_6_and_its_risk(evaluate: Evaluate) -> None:
    cases = settings(24)
    given = json.dumps([[Sigma.tolist(), n] for Sigma, n in cases])
    found = evaluate(f"{given}.map(([S, n]) => [compute.preconditioner(S, n), compute.leastRisk(S, n)])")
    for (matrix, n), (A, risk) in zip(cases, found, strict=True):
        Sigma = torch.from_numpy(matrix)
        assert off(A, theorem1_preconditioner(Sigma, n)) < ACCURACY, (len(matrix), n)
        assert risk == pytest.approx(float(theorem1_risk(Sigma, n)), rel=ACCURACY)


def test_the_best_point_of_theorem_3(evaluate: Evaluate) -> None:
    rng = np.random.default_rng(3)
    sizes = [(1, 1), (8, 1), (2, 2), (8, 100_000), (5, 20)]
    sizes += [(int(rng.integers(1, 9)), int(rng.integers(1, 400))) for _ in range(7)]
    cases = [(d, n, L) for d, n in sizes for L in (1, 2, 3, 4)]
    found = evaluate(f"{json.dumps(cases)}.map(([d, n, L]) => compute.bestPoint(d, n, L))")
    for (d, n, L), point in zip(cases, found, strict=True):
        optimum = InvariantRisk(d, n, L).optimum()
        assert point["scalars"] == pytest.approx(optimum.a_L.tolist(), rel=ACCURACY), (d, n, L)
        assert point["risk"] == pytest.approx(optimum.risk, rel=ACCURACY), (d, n, L)


def test_the_gap_of_a_guess(evaluate: Evaluate) -> None:
    rng = np.random.default_rng(5)
    for matrix, n in settings(8):
        d = len(matrix)
        mean, vector, bias = rng.standard_normal(d), rng.standard_normal(d), float(rng.standard_normal())
        given = ", ".join(
            json.dumps(value) for value in (matrix.tolist(), mean.tolist(), vector.tolist(), bias)
        )
        found = evaluate(f"compute.gap({json.dumps(matrix.tolist())}, {n}, compute.guessError({given}))")
        tensors = [torch.from_numpy(array) for array in (mean, vector, matrix)]
        assert found == pytest.approx(gap(tensors[0], tensors[1], bias, n, tensors[2]), rel=ACCURACY)
        for H in range(d + 1):
            lost = evaluate(f"compute.lost({d}, {n}, {H}, 2.5)") if H in (0, d - 1, d) else None
            assert lost is None or lost == pytest.approx(2.5 * lost_slope(d, n, H), rel=ACCURACY)


def typed(tab: Browser, **values: str) -> dict[str, Any]:
    """Type into the panel, and return each form's values by name."""
    for name, value in values.items():
        where = f"document.querySelector('#compute-panel [name=\"{name}\"]')"
        event = "new Event('input', {bubbles: true})"
        tab.run(f"{where}.value = {json.dumps(value)}; {where}.dispatchEvent({event})")
    rows = "[r.querySelector('th').textContent, JSON.parse(r.querySelector('td').dataset.value)]"
    return dict(tab.run(f"[...document.querySelectorAll('#compute-panel .found > tr')].map((r) => {rows})"))


def complaint(tab: Browser) -> str:
    return tab.run(
        "[...document.querySelectorAll('#compute-panel .wrong')].map((e) => e.textContent).join('')"
    )


@pytest.mark.chromium
def test_what_is_typed_is_what_is_computed(opened: Browser) -> None:
    matrix, n = [[2.0, 0.3], [0.3, 0.5]], 7
    for text in ("2, 0.3\n0.3, 0.5", "[[2, .3], [.3, 5e-1]]", "2 0.3; 0.3 0.5"):
        found = typed(opened, Sigma=text, n="7", **{"w*": "1, -1", "v": "0.5", "b": "2", "H": "1"})
        Sigma = torch.tensor(matrix, dtype=torch.float64)
        assert off(found["A"], theorem1_preconditioner(Sigma, n)) < ACCURACY
        least = float(theorem1_risk(Sigma, n))
        assert found["least risk"] == pytest.approx(least, rel=ACCURACY)
        mean, vector = torch.tensor([1.0, -1]).double(), torch.tensor([0.5, 0.5]).double()
        assert found["gap"] == pytest.approx(gap(mean, vector, 2.0, n, Sigma), rel=ACCURACY)
        assert found["least risk, any number of heads"] == pytest.approx(least + found["gap"], rel=ACCURACY)
        assert found["1 heads lose at least"] == "known at Sigma = I only"
        for L in (1, 2, 3, 4):
            optimum = InvariantRisk(2, n, L).optimum()
            assert found[f"L = {L}: a"] == pytest.approx(optimum.a_L.tolist(), rel=ACCURACY)
            assert found[f"L = {L}: risk"] == pytest.approx(optimum.risk, rel=ACCURACY)
    found = typed(opened, Sigma="2, 0.5")
    assert found["eigenvalues of A, in the order of Sigma's"] == pytest.approx(
        [7 / 18.5, 7 / 6.5], rel=ACCURACY
    )
    assert complaint(opened) == ""
    command = "icl check check=ahn/theorem1 check.dim=2 'check.eigenvalues=[2,0.5]' check.context=7"
    assert command in opened.run("document.getElementById('compute-panel').textContent")
    assert "1 heads lose at least" in typed(opened, Sigma="1, 1")


@pytest.mark.chromium
@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"Sigma": ""}, "Sigma: type d eigenvalues in one line, or d lines of d numbers"),
        ({"Sigma": "1, two"}, "Sigma: two is not a number"),
        ({"Sigma": "1, -2"}, "Sigma: has the eigenvalue -2, all must be positive"),
        ({"Sigma": "1 2\n3"}, "Sigma: line 2 has 1 numbers, not 2; type d eigenvalues in one line"),
        ({"Sigma": "1 2; 3 4"}, "Sigma: must be symmetric, and has 2 at (1, 2), 3 at (2, 1)"),
        ({"Sigma": "1 2; 2 1"}, "Sigma: must be positive definite, its least eigenvalue is -1.00"),
        ({"Sigma": "1 1 1 1 1 1 1 1 1"}, "Sigma: has 9 rows or eigenvalues, at most 8 here"),
        ({"n": "2.5"}, "n: must be a whole number from 1 to 1000000"),
        ({"n": ""}, "n: must be one number"),
        ({"w*": "1 2 3"}, "w*: must be 2 numbers, as many as Sigma has rows, or one for all"),
        ({"H": "-1"}, "H: must be a whole number from 0 to 1000"),
    ],
)
def test_wrong_input_is_a_line_in_words(opened: Browser, values: dict[str, str], line: str) -> None:
    typed(opened, Sigma="1 2", n="3")
    found = typed(opened, **values)
    assert complaint(opened).startswith(line)
    assert ("least risk" in found) == ("Sigma" not in values and "n" not in values), (
        "no number stands beside it"
    )
