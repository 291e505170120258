r"""hydra/sweeper=optuna: a search for the least `optimized_metric`, by Optuna's ask and tell.

    icl train -m experiment=ahn/theorem3 hydra/sweeper=optuna optimized_metric=exact_risk \
        'optimizer.lr=tag(log,interval(0.001,0.1))' model.layers=1,2 hydra.sweeper.n_trials=20

The proposals depend on the seed and on what was told, and a run that is done is not trained again: the same
command goes on where it was interrupted.
"""

import math
from typing import Any, Literal

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from icl.errors import InputError, Unavailable


class Optuna(Sweeper):
    def __init__(
        self,
        n_trials: int = 20,
        n_jobs: int = 1,
        direction: Literal["minimize", "maximize"] = "minimize",
        seed: int = 0,
        params: dict[str, str] | None = None,
    ) -> None:
        self.n_trials, self.n_jobs, self.direction, self.seed = n_trials, n_jobs, direction, seed
        self.params = params or {}

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.master, self.context = config, hydra_context
        launcher = Plugins.instance().instantiate_launcher(hydra_context, task_function, config)
        self.launch = launcher.launch

    def sweep(self, arguments: list[str]) -> None:
        try:
            import optuna
        except ImportError:
            raise Unavailable("hydra/sweeper=optuna: pip install 'icl-theory[optuna]'") from None
        from hydra_plugins.icl._multirun import current

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        given = [*(f"{key}={value}" for key, value in self.params.items()), *arguments]
        read = OverridesParser.create(self.context.config_loader).parse_overrides(given)
        fixed = [str(one.input_line) for one in read if not one.is_sweep_override()]
        space = {str(one.key_or_group): distribution(one) for one in read if one.is_sweep_override()}
        if not space:
            raise InputError("hydra/sweeper=optuna: give a key several values or an interval(LOW,HIGH)")
        study = optuna.create_study(
            direction=self.direction, sampler=optuna.samplers.TPESampler(seed=self.seed)
        )
        loader = self.context.config_loader
        for first in range(0, self.n_trials, self.n_jobs):
            trials = [study.ask(space) for _ in range(min(self.n_jobs, self.n_trials - first))]
            jobs = [[*fixed, *(f"{key}={value}" for key, value in trial.params.items())] for trial in trials]
            current().add(jobs, self.master, loader)
            for trial, returned in zip(trials, self.launch(jobs, first), strict=True):
                value = float(returned.return_value)
                if math.isnan(value):  # of a job that failed
                    study.tell(trial, state=optuna.trial.TrialState.FAIL)
                else:
                    study.tell(trial, value)


def distribution(override: Override) -> Any:
    """Return Optuna's distribution of a swept key."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if override.is_discrete_sweep():
        return CategoricalDistribution(list(override.sweep_string_iterator()))
    interval: Any = override.value()
    is_whole = isinstance(interval.start, int) and isinstance(interval.end, int)
    kind = IntDistribution if is_whole else FloatDistribution
    return kind(interval.start, interval.end, log="log" in interval.tags)
