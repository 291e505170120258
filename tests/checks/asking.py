"""Settings at which a check holds, and mutants of the science that must turn its verdict."""

import __future__

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from icl.errors import InputError
from tests.checks.routes import disagrees, has_routes


def shown(finding: Any) -> bool:
    """Return whether the inequality that is shown with the verdict holds."""
    measured, bound = finding.measured[finding.bound.of], finding.bound
    return measured > bound.value if bound.direction == ">" else measured <= bound.value


def held(check: Any, weights: Any = None, *, margin: float = 0.0, verdict: str = "holds") -> Any:
    """Measure a check, also on given weights. `margin`: how far beyond the bound its control is, where
    both are of one quantity."""
    finding = check.measure() if weights is None else check.judge(weights)
    assert finding.verdict == verdict and finding.control.rejected
    assert verdict == "fails" or shown(finding)
    assert not margin or finding.control.measured > margin * finding.bound.value
    has_meanings(finding)
    has_routes(check, finding, weights)
    return finding


def has_meanings(finding: Any) -> None:
    """Assert that every number but standard errors and bounds says in one line what it is, as a noun phrase
    that can follow "the"."""
    for name in finding.measured:
        if name.endswith(("_stderr", "_bound")):
            continue
        meaning = finding.meanings.get(name, "")
        assert re.fullmatch(r"(?!(the|what|whether|how) )[^\n]{4,130}(?<!\.)", meaning), (name, meaning)


@dataclass(frozen=True)
class Mutant:
    """A replacement of `where.name` by `wrong(original)`, or by `wrong` itself if that is no function.
    `of` is the number that the verdict is shown to rest on; "control" is one that was not rejected."""

    where: Any
    name: str
    wrong: Any
    verdict: str = "fails"
    of: str = ""
    settings: tuple[tuple[str, Any], ...] | dict[str, Any] = ()


def edited(function: Any, old: str, new: str, at: int = 0) -> Callable[..., Any]:
    """Return the function with one of its operators changed: the occurrence `at` of `old` in its source."""
    parts = textwrap.dedent(inspect.getsource(function)).split(old)
    assert len(parts) > at + 1, f"{function.__name__} has {len(parts) - 1} times {old}"
    source = old.join(parts[: at + 1]) + new + old.join(parts[at + 1 :])
    names = dict(inspect.unwrap(function).__globals__)
    exec(compile(source, function.__name__, "exec", __future__.annotations.compiler_flag), names)
    return lambda right, *given, **more: names[function.__name__](*given, **more)


def blinded(*where_name_wrong: Any) -> Mutant:
    """Return a mutant by which the control is no longer rejected, so that nothing is shown."""
    return Mutant(*where_name_wrong, verdict="undecided", of="control")


class Holds:
    """Settings at which a check holds, or fails as it should; `also` is a test of (check, finding)."""

    def __init__(self, *settings: dict[str, Any], also: Any = None, needs: str = "", **how: Any) -> None:
        self.settings, self.also, self.needs = settings, also, needs
        self.margin, self.of = how.pop("margin", 0.0), how.pop("of", "")
        self.verdict, self.common = how.pop("verdict", "holds"), how


class Mutants:
    """Mutants that must turn a check's verdict, at settings that they share; `needs` names fixtures."""

    def __init__(self, *mutants: Mutant, needs: str = "", **common: Any) -> None:
        self.mutants, self.needs, self.common = mutants, needs, common


class Case:
    """Entries of one check in a paper's table: settings where it holds, and mutants that it must see."""

    def __init__(self, *groups: Holds | Mutants) -> None:
        self.holds = [group for group in groups if isinstance(group, Holds)]
        self.mutants = [group for group in groups if isinstance(group, Mutants)]


def settings_test(cases: dict[Any, Case]) -> Any:
    """Return a test of every check at every of its settings."""
    params = [
        pytest.param(check, group, settings, id=f"{check.__name__}-{settings}")
        for check, case in cases.items()
        for group in case.holds
        for settings in group.settings
    ]

    @pytest.mark.parametrize(("check", "group", "settings"), params)
    def holds_there(request: Any, check: Any, group: Holds, settings: dict[str, Any]) -> None:
        use(request, group.needs)
        made = check(**group.common | settings)
        finding = held(made, margin=group.margin, verdict=group.verdict)
        assert group.of in ("", finding.bound.of)
        if group.also is not None:
            group.also(made, finding)

    return holds_there


def mutants_test(cases: dict[Any, Case]) -> Any:
    """Return a test that every mutant of every check turns its verdict."""
    params = [
        pytest.param(check, group, mutant, id=f"{check.__name__}-{mutant.name}")
        for check, case in cases.items()
        for group in case.mutants
        for mutant in group.mutants
    ]

    @pytest.mark.parametrize(("check", "group", "mutant"), params)
    def is_seen(request: Any, mutate: Any, check: Any, group: Mutants, mutant: Mutant) -> None:
        use(request, group.needs)
        see(mutate, check, mutant, **group.common)

    return is_seen


def use(request: Any, fixtures: str) -> None:
    """Set up the fixtures of these names."""
    for name in fixtures.split():
        request.getfixturevalue(name)


def see(mutate: Any, check: Any, mutant: Mutant, **common: Any) -> None:
    """Assert that the mutant turns the check's verdict as it says, or that a second route tells it, whereupon
    nothing is decided."""
    mutate(mutant.where, mutant.name, mutant.wrong)
    finding = check(**common | dict(mutant.settings)).measure()
    if mutant.of != "control" and disagrees(finding):
        assert finding.verdict == "undecided"
        return
    assert finding.verdict == mutant.verdict
    assert not finding.control.rejected if mutant.of == "control" else mutant.of in ("", finding.bound.of)
    assert mutant.verdict != "fails" or not shown(finding)


def elsewhere(finding: Any) -> None:
    """Assert that the judged weights are not at the stated point, which refutes nothing."""
    assert finding.verdict == "undecided" and not shown(finding)
    assert "not at the stated point" in finding.notes[0]


def refuses(check: Any, *given: tuple[Any, str]) -> None:
    """Assert that judging these weights is refused with these words."""
    for weights, words in given:
        with pytest.raises(InputError, match=words):
            check.judge(weights)
