"""Callbacks that a config can list below `callbacks`; how to write your own is in icl.training.hooks."""

from icl.callbacks.checkpoints import Checkpoints
from icl.callbacks.critical_point import CriticalPointGradient, TaskRisks
from icl.callbacks.curriculum import Curriculum
from icl.callbacks.growth import Growth
from icl.callbacks.metrics import DistanceToSet, ExactRisk, MetricCallback, StepCallback
from icl.callbacks.monitors import EarlyStopping, ModelCheckpoint
from icl.callbacks.progress import Progress
from icl.callbacks.weight_heatmaps import WeightHeatmaps

__all__ = [
    "Checkpoints",
    "CriticalPointGradient",
    "Curriculum",
    "DistanceToSet",
    "EarlyStopping",
    "ExactRisk",
    "Growth",
    "MetricCallback",
    "ModelCheckpoint",
    "Progress",
    "StepCallback",
    "TaskRisks",
    "WeightHeatmaps",
]
