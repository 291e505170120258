"""Checks of lds's statements, one file per result, and their machinery."""
