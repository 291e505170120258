"""Which exact numbers of the checks are known by one route only, and which test is each route "in the tests".

Every other exact number names its second route in its check. The list can only shrink: `has_routes` holds it
against every finding that a test of the checks measures.
"""

import json
from pathlib import Path
from typing import Any

from icl.verdicts import kinds_of

ONE_ROUTE: dict[str, set[str]] = {
    id: set(names) for id, names in json.loads(Path(__file__).with_suffix(".json").read_text()).items()
}

IN_TESTS = {
    "risk of a step of these sizes, which is that of multi-head LSA": (
        "tests/checks/xie/test_cases.py::gd_lower_bound_holds_by_the_closed_form"
    ),
    "a polynomial in rational numbers": (
        "tests/theory/looped/test_risk.py::test_the_rule_and_its_gradient_are_those_of_the_polynomial"
    ),
    "the rational lower bound of the risk on S, which the optimum attains": (
        "tests/theory/ahn/test_invariant_risk.py::test_theorem_3_optimum_is_the_lower_bound_and_the_only_minimum"
    ),
    "steps of the iteration, counted by hand": "tests/checks/giannou/test_order.py::test_steps_by_hand",
    "the risk of the K that the lower bound comes with": (
        "tests/theory/ahn/test_equivariant_bound.py::test_the_bound_is_the_risk_of_the_k_that_it_comes_with"
    ),
    "a scan of the directions of b": (
        "tests/checks/lds/test_optimum_s.py::test_a_head_is_below_a_level_where_a_scan_finds_one"
    ),
    "second differences on drawn contexts": (
        "tests/theory/looped/test_risk.py::test_curvatures_are_those_of_drawn_contexts"
    ),
    "Sturm's theorem at polynomials whose roots are known": (
        "tests/theory/looped/test_risk.py::test_roots_are_counted_and_enclosed"
    ),
    "integrals over the law of Marchenko and Pastur": (
        "tests/theory/lu/test_limits.py::test_the_ridgeless_errors_are_those_of_the_integrals"
    ),
    "dMMSE on long prompts": (
        "tests/checks/lu/test_cases.py::test_on_long_prompts_dmmse_errs_by_the_distance_from_the_nearest_task"
    ),
}


def has_routes(check: Any, finding: Any, weights: Any = None) -> None:
    """Assert that every exact number names a second route that exists and agrees, or is on the list, which
    has no others."""
    id = type(check).__module__.removeprefix("icl.checks.").replace(".", "/")
    id += ", given weights" if weights is not None else ""
    listed = ONE_ROUTE.get(id, set())
    for name, kind in kinds_of(finding.measured, finding.kinds, finding.bound.of).items():
        route = finding.routes.get(name)
        if kind == "exact":
            assert (route is None) == (name in listed), f"{id}: {name}"
    for name, route in finding.routes.items():
        assert route.how != "tests" or route.name in IN_TESTS, f"{id}: {name}: {route.name}"
        assert route.how in ("tests", "definition") or route.name, f"{id}: {name}"
        assert route.how != "computed" or route.agrees, f"{id}: {name}: {route}"


def disagrees(finding: Any) -> bool:
    """Return whether a second route of one of the numbers gives another value."""
    return any(route.how == "computed" and not route.agrees for route in finding.routes.values())
