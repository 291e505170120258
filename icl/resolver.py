"""`${by_scale:1,2,3}` in a config is 1 at scale=smoke, 2 at laptop and 3 at paper; `${per_run:10}` is the
period, in steps, of what happens ten times in a run.

They are registered where OmegaConf is imported before icl, and by icl's Hydra plugin, which Hydra imports
before it composes anything; so a notebook resolves the configs of icl. To import OmegaConf here would take
ten times as long as `icl --help` does.
"""

import sys
from typing import Any

from icl.errors import InputError, one_of

SCALES = ("smoke", "laptop", "paper")


def register() -> None:
    """Register the resolvers with OmegaConf."""
    import omegaconf

    own: Any = omegaconf.OmegaConf
    is_old = omegaconf.__version__.startswith("2.3.")  # there register_resolver is an older function
    register = own.register_new_resolver if is_old else own.register_resolver
    register("by_scale", by_scale, replace=True)
    register("per_run", per_run, replace=True)


def by_scale(*values: Any, _root_: Any) -> Any:
    """Return the value for the scale in force, which is the config's `scale`."""
    scale = one_of("scale", _root_.get("scale", "laptop"), SCALES)
    if len(values) != len(SCALES):
        raise InputError(f"${{by_scale:...}} has {len(values)} values, must have {len(SCALES)}")
    value = values[SCALES.index(scale)]
    if not isinstance(value, list | dict):
        return value
    from omegaconf import OmegaConf

    return OmegaConf.create(value)


def per_run(times: int, *, _root_: Any) -> int:
    """Return the period, in steps, of what happens `times` times in a run; 1: only at its end."""
    return max(1, int(_root_.train.steps // times))


if "omegaconf" in sys.modules:
    register()
