"""Prompt distributions."""

from icl.tasks.dynamical_system import DynamicalSystem, DynamicalSystemLaw
from icl.tasks.linear_regression import LinearRegression, LinearRegressionLaw
from icl.tasks.prompts import GramPrompt, TokenPrompt

__all__ = [
    "DynamicalSystem",
    "DynamicalSystemLaw",
    "GramPrompt",
    "LinearRegression",
    "LinearRegressionLaw",
    "TokenPrompt",
]
