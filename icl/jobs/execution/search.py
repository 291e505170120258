"""Search methods: a grid, random points, or Bayesian optimization.

A point depends on the search's seed, its number and what is known of the points before it, so that a search
that is repeated asks for the same points, finds the runs that are done and goes on from there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, Override, RangeSweep

from icl.config.objects import settings_of
from icl.errors import InputError, Unavailable, one_of, whole
from icl.random import generator

if TYPE_CHECKING:
    import numpy as np
    import optuna

METHODS = ("grid", "random", "bayes")
Point = list[str]  # overrides
_OLDEST_OPTUNA = 5
_INSTALL = "pip install 'icl-theory[optuna]'"


@dataclass(frozen=True)
class SearchSettings:
    """`search.*`"""

    method: str = "random"
    trials: int = 20
    objective: str = "exact_risk"
    batch: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("search.method", self.method, METHODS)
        for name, least in (("trials", 1), ("batch", 1), ("seed", 0)):
            whole(f"search.{name}", getattr(self, name), least)
        if not isinstance(self.objective, str) or not self.objective:
            raise InputError(f"search.objective={self.objective}: must be the name of a metric")


def settings(node: Any) -> SearchSettings:
    if not isinstance(node, dict):
        raise InputError(f"search={node}: must be a group of settings")
    return settings_of(SearchSettings, "search", node)


@dataclass(frozen=True)
class Dimension:
    """A swept key: the values it is given, or an interval of numbers, of whole ones or on a logarithmic
    scale."""

    key: str
    values: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    is_whole: bool = False
    is_log: bool = False

    def at_random(self, rng: np.random.Generator) -> str:
        if self.values:
            return self.values[rng.integers(len(self.values))]
        if self.is_whole:
            return str(rng.integers(int(self.low), int(self.high) + 1))
        if self.is_log:
            return repr(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))
        return repr(float(rng.uniform(self.low, self.high)))

    def suggested(self, trial: optuna.Trial) -> str:
        if self.values:
            return str(trial.suggest_categorical(self.key, self.values))
        if self.is_whole:
            return str(trial.suggest_int(self.key, int(self.low), int(self.high), log=self.is_log))
        return repr(trial.suggest_float(self.key, self.low, self.high, log=self.is_log))


def dimension(override: Override) -> Dimension:
    key, value = override.get_key_element(), override.value()
    if isinstance(value, ChoiceSweep | RangeSweep) or not isinstance(value, IntervalSweep):
        return Dimension(key, tuple(map(str, override.sweep_string_iterator())))
    low, high = value.start, value.end
    if low is None or high is None or not low < high:
        raise InputError(f"{key}: an interval must have its ends in order")
    is_log = "log" in value.tags
    if is_log and low <= 0:
        raise InputError(f"{key}: an interval on a logarithmic scale must be above 0")
    both_whole = isinstance(low, int) and isinstance(high, int)
    return Dimension(key, (), float(low), float(high), both_whole, is_log)


class Method(Protocol):
    def ask(self, first: int, count: int) -> list[Point]:
        """Return points number first, first + 1, ...; fewer or none when the grid is used up."""

    def tell(self, first: int, found: Sequence[float | None]) -> None:
        """Report the results of these points; None where a run failed."""


class Grid:
    def __init__(self, space: Sequence[Dimension]) -> None:
        for one in space:
            if not one.values:
                raise InputError(f"{one.key}: search.method=grid takes values, not an interval")
        self.space = space

    def ask(self, first: int, count: int) -> list[Point]:
        points = itertools.product(*([f"{one.key}={value}" for value in one.values] for one in self.space))
        return [list(point) for point in itertools.islice(points, first, first + count)]

    def tell(self, first: int, found: Sequence[float | None]) -> None:
        """Do nothing: a grid does not depend on results."""


class Random:
    def __init__(self, space: Sequence[Dimension], seed: int) -> None:
        self.space, self.seed = space, seed

    def ask(self, first: int, count: int) -> list[Point]:
        streams = (generator(self.seed, "sweep", number) for number in range(first, first + count))
        return [[f"{one.key}={one.at_random(rng)}" for one in self.space] for rng in streams]

    def tell(self, first: int, found: Sequence[float | None]) -> None:
        """Do nothing: random points do not depend on results."""


class Bayes:
    """Optuna's tree-structured Parzen estimator. Its study is kept in `path` (SQLite) from the first points
    that are finished, for the user to inspect; trials under way count as bad ones meanwhile."""

    def __init__(self, space: Sequence[Dimension], seed: int, path: Path) -> None:
        try:
            import optuna
        except ImportError:
            raise Unavailable(f"search.method=bayes: needs optuna; {_INSTALL}") from None
        if int(optuna.__version__.partition(".")[0]) < _OLDEST_OPTUNA:
            found = f"optuna {optuna.__version__} is installed"
            raise Unavailable(f"search.method=bayes: needs optuna {_OLDEST_OPTUNA}, {found}; {_INSTALL}")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space, self.seed, self.path = space, seed, path
        self.study = self._stored() if path.exists() else optuna.create_study()

    def _stored(self) -> optuna.Study:
        import optuna

        return optuna.create_study(study_name="search", storage=f"sqlite:///{self.path}", load_if_exists=True)

    def ask(self, first: int, count: int) -> list[Point]:
        return [self._point(number) for number in range(first, first + count)]

    def _point(self, number: int) -> Point:
        import warnings

        import optuna

        if number < len(self.study.trials):  # of an earlier session, finished or not
            trial = optuna.Trial(self.study, self.study.trials[number]._trial_id)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                seed = int(generator(self.seed, "sweep", number).integers(1 << 31))
                self.study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
            trial = self.study.ask()
        return [f"{one.key}={one.suggested(trial)}" for one in self.space]

    def tell(self, first: int, found: Sequence[float | None]) -> None:
        import optuna

        for number, value in enumerate(found, first):
            if not self.study.trials[number].state.is_finished():
                state = optuna.trial.TrialState.FAIL if value is None else None
                self.study.tell(number, value, state=state)
        if not self.path.exists():  # the folder is there once the first points have run
            memory, self.study = self.study, self._stored()
            self.study.add_trials(memory.trials)


def method(chosen: SearchSettings, space: Sequence[Dimension], folder: Path) -> Method:
    if not space:
        raise InputError("hydra/sweeper=search: nothing is swept; give values, a range or an interval")
    if chosen.method == "grid":
        return Grid(space)
    if chosen.method == "random":
        return Random(space, chosen.seed)
    return Bayes(space, chosen.seed, folder / "search.db")
