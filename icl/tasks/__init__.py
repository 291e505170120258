"""Prompt distributions."""

from icl.tasks.conditioned_regression import ConditionedRegression, ConditionedRegressionLaw
from icl.tasks.dynamical_system import DynamicalSystem, DynamicalSystemLaw
from icl.tasks.law import Law, Task
from icl.tasks.linear_regression import LinearRegression, LinearRegressionLaw, TaskDiversityLaw
from icl.tasks.logistic_regression import LogisticRegression, LogisticRegressionLaw
from icl.tasks.prompts import GramPrompt, TokenPrompt
from icl.tasks.rotated_regression import RotatedRegression, RotatedRegressionLaw
from icl.tasks.token_law import TokenLaw

__all__ = [
    "ConditionedRegression",
    "ConditionedRegressionLaw",
    "DynamicalSystem",
    "DynamicalSystemLaw",
    "GramPrompt",
    "Law",
    "LinearRegression",
    "LinearRegressionLaw",
    "LogisticRegression",
    "LogisticRegressionLaw",
    "RotatedRegression",
    "RotatedRegressionLaw",
    "Task",
    "TaskDiversityLaw",
    "TokenLaw",
    "TokenPrompt",
]
