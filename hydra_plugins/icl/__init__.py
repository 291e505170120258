"""Hydra finds plugins only under this name; the work is done in icl.jobs.execution.multirun.

Hydra imports it before it composes anything, and what `${by_scale:...}` in a config means is then known.
"""

from icl.resolver import register

register()
