"""Statements of papers, each decided: `Statement` and what it is written with."""

from icl.checks.statement import Measured, Sample, Statement, setting

__all__ = ["Measured", "Sample", "Statement", "setting"]
