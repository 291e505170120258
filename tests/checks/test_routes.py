"""Tests of the second routes that the checks name: one "in the tests" is a test there is, and the stored
records hold the list of numbers with one route."""

import json
from pathlib import Path

import pytest

from icl.checks.giannou.appendixE_1 import AppendixE1
from icl.checks.giannou.lemmaB_9 import LemmaB9
from icl.checks.giannou.lemmaB_10 import LemmaB10
from icl.checks.xie.lemma1 import Lemma1
from icl.theory.quadratic import QuadraticRisk
from tests.checks.routes import IN_TESTS, ONE_ROUTE, has_routes

ROOT = Path(__file__).parents[2]
RECORDS = [
    (id, check)
    for path in sorted((ROOT / "docs" / "records").glob("*.json"))
    for id, check in json.loads(path.read_text(encoding="utf-8"))["checks"].items()
]


@pytest.mark.parametrize("route", IN_TESTS)
def test_a_route_in_the_tests_is_there(route):
    path, _, name = IN_TESTS[route].partition("::")
    assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8")
    assert any(f'"{route}"' in source.read_text(encoding="utf-8") for source in (ROOT / "icl").rglob("*.py"))


@pytest.mark.parametrize("check", [AppendixE1(), LemmaB9(), LemmaB10(samples=8, steps=5), LemmaB9(mu=1.0)])
def test_every_exact_number_has_a_route(check):
    has_routes(check, check.measure())


def test_the_list_is_of_checks_there_are():
    known = {id for id, _ in RECORDS}
    assert {id.removesuffix(", given weights") for id in ONE_ROUTE} <= known
    assert any("routes" in check for _, check in RECORDS)


@pytest.mark.parametrize(("id", "check"), RECORDS, ids=[id for id, _ in RECORDS])
def test_a_record_has_a_route_for_every_exact_number_or_it_is_on_the_list(id, check):
    if "routes" not in check:
        pytest.skip("a record from before there were routes")
    exact = {name for name, kind in check["kinds"].items() if kind == "exact"}
    assert exact <= check["routes"].keys()
    assert {name for name in exact if check["routes"][name]["how"] == "none"} == ONE_ROUTE.get(
        id, set()
    ) & exact
    assert all(route["agrees"] for route in check["routes"].values() if route["how"] == "computed")


def test_a_route_that_is_off_is_seen(mutate):
    """Change a risk by 1e-6 in the moments alone: its closed form tells, and nothing is decided."""
    mutate(QuadraticRisk, "value_of_layer", lambda right, *given: right(*given) * (1 + 1e-6))
    found = Lemma1(4, 5).measure()
    route = found.routes["risk_at_midpoint"]
    assert found.verdict == "undecided" and not route.agrees and route.off == pytest.approx(1e-6, rel=1e-3)
    assert found.notes[0].startswith("undecided: ") and "by closed forms differ by" in found.notes[0]
