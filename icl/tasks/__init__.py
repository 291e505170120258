"""Prompt distributions."""

from icl.tasks.linear_regression import LinearRegression, LinearRegressionLaw
from icl.tasks.prompts import GramPrompt, TokenPrompt

__all__ = ["GramPrompt", "LinearRegression", "LinearRegressionLaw", "TokenPrompt"]
