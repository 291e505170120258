"""Tests of the second routes that the checks name: each route "in the tests" is a test there is."""

from pathlib import Path

import pytest

from tests.checks.routes import IN_TESTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("route", IN_TESTS)
def test_a_route_in_the_tests_is_there(route):
    path, _, name = IN_TESTS[route].partition("::")
    assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8")
    assert any(route in source.read_text(encoding="utf-8") for source in (ROOT / "icl/checks").rglob("*.py"))
