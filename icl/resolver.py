"""`${at:smoke,laptop,paper}` in a config: the value for the scale in force.

It is registered where OmegaConf is imported before icl, and by icl's Hydra plugin, which Hydra imports before
it composes anything; so a notebook resolves the configs of icl. To import OmegaConf here would take
ten times as long as `icl --help` does.
"""

from __future__ import annotations

import sys
from typing import Any

from icl.errors import InputError, one_of

SCALES = ("smoke", "laptop", "paper")


def register() -> None:
    """Register the resolver with OmegaConf."""
    import omegaconf

    own: Any = omegaconf.OmegaConf
    is_old = omegaconf.__version__.startswith("2.3.")  # there register_resolver is an older function
    (own.register_new_resolver if is_old else own.register_resolver)("at", at, replace=True)


def at(*values: Any, _root_: Any) -> Any:
    """Return the value for the scale in force, which is the config's `scale`."""
    scale = one_of("scale", _root_.get("scale", "laptop"), SCALES)
    if len(values) != len(SCALES):
        raise InputError(
            f"${{at:...}} has {len(values)} values, must have one for each of {', '.join(SCALES)}"
        )
    value = values[SCALES.index(scale)]
    if not isinstance(value, list | dict):
        return value
    from omegaconf import OmegaConf

    return OmegaConf.create(value)


if "omegaconf" in sys.modules:
    register()
