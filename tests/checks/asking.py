"""How a check is asked: where it holds, and what it makes of a science that is wrong in one place."""

import __future__

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from icl.errors import InputError


def shown(finding: Any) -> bool:
    """Does the inequality hold that is shown with the verdict?"""
    measured, bound = finding.measured[finding.bound.of], finding.bound
    return measured > bound.value if bound.direction == ">" else measured <= bound.value


def held(check: Any, weights: Any = None, *, margin: float = 0.0, verdict: str = "holds") -> Any:
    """Asked of itself or of given weights. `margin`: how far beyond the bound its control is, where both are
    of one quantity."""
    finding = check.measure() if weights is None else check.judge(weights)
    assert finding.verdict == verdict and finding.control.rejected
    assert verdict == "fails" or shown(finding)
    assert not margin or finding.control.measured > margin * finding.bound.value
    return finding


def holds(
    check: Any,
    *settings: dict[str, Any],
    margin: float = 0.0,
    of: str = "",
    verdict: str = "holds",
    **common: Any,
) -> Any:
    """Of a test of (check, finding): the check is asked at each of these settings and holds, or fails as it
    should; `of` names what the bound shown is of."""

    def asked(test: Callable[[Any, Any], None]) -> Any:
        @pytest.mark.parametrize("settings", settings, ids=str)
        def asks(settings: dict[str, Any]) -> None:
            made = check(**common | settings)
            finding = held(made, margin=margin, verdict=verdict)
            assert of in ("", finding.bound.of)
            test(made, finding)

        return asks

    return asked


@dataclass(frozen=True)
class Mutant:
    """`wrong` in the place of `where.name`, given what stood there first; or, if no function, just itself.
    `of` is what the verdict is shown to rest on; "control" is one that was not rejected."""

    where: Any
    name: str
    wrong: Any
    verdict: str = "fails"
    of: str = ""
    settings: tuple[tuple[str, Any], ...] | dict[str, Any] = ()


def edited(function: Any, old: str, new: str, at: int = 0) -> Callable[..., Any]:
    """The function with one of its operators changed: the occurrence `at` of `old` in its source."""
    parts = textwrap.dedent(inspect.getsource(function)).split(old)
    assert len(parts) > at + 1, f"{function.__name__} has {len(parts) - 1} times {old}"
    source = old.join(parts[: at + 1]) + new + old.join(parts[at + 1 :])
    names = dict(inspect.unwrap(function).__globals__)
    exec(compile(source, function.__name__, "exec", __future__.annotations.compiler_flag), names)
    return lambda right, *given, **more: names[function.__name__](*given, **more)


def blinded(*where_name_wrong: Any) -> Mutant:
    """One by which the control is no longer rejected, so that nothing is shown."""
    return Mutant(*where_name_wrong, verdict="undecided", of="control")


def seen(check: Any, *mutants: Mutant, needs: str = "mutate", **common: Any) -> Any:
    """A test that each mutant turns the verdict; `needs` names a fixture."""

    @pytest.mark.usefixtures(*needs.split())
    @pytest.mark.parametrize("mutant", mutants, ids=lambda mutant: mutant.name)
    def sees(mutate: Any, mutant: Mutant) -> None:
        mutate(mutant.where, mutant.name, mutant.wrong)
        finding = check(**common | dict(mutant.settings)).measure()
        assert finding.verdict == mutant.verdict
        assert not finding.control.rejected if mutant.of == "control" else mutant.of in ("", finding.bound.of)
        assert mutant.verdict != "fails" or not shown(finding)

    return sees


def elsewhere(finding: Any) -> None:
    """The weights that were judged are not at the stated point, which refutes nothing."""
    assert finding.verdict == "undecided" and not shown(finding)
    assert "not where the statement puts them" in finding.notes[0]


def refuses(check: Any, *given: tuple[Any, str]) -> None:
    """To judge weights, with these words."""
    for weights, words in given:
        with pytest.raises(InputError, match=words):
            check.judge(weights)
