"""Checks of giannou's statements, one file per result, and their machinery."""
