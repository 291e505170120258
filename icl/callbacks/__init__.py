"""Callbacks (pl.Callback) that a config can list below `callbacks`. Write your own beside them.

Every hook of Lightning is called, and for each of the many optimizer steps on a batch two of ours (see
icl.training.module): `on_weights` and `on_step_end`; `on_rows(trainer, pl_module, rows)` for each row of
metrics, one for each seed.
"""

from icl.callbacks.checkpoints import Checkpoints
from icl.callbacks.curriculum import Curriculum
from icl.callbacks.growth import Growth
from icl.callbacks.metrics import (
    CriticalPointGradient,
    DistanceToSet,
    ExactRisk,
    MetricCallback,
    StepCallback,
    TaskRisks,
)
from icl.callbacks.profile import Profile
from icl.callbacks.progress import Progress
from icl.callbacks.weight_heatmaps import WeightHeatmaps

__all__ = [
    "Checkpoints",
    "CriticalPointGradient",
    "Curriculum",
    "DistanceToSet",
    "ExactRisk",
    "Growth",
    "MetricCallback",
    "Profile",
    "Progress",
    "StepCallback",
    "TaskRisks",
    "WeightHeatmaps",
]
