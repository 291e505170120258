"""Machinery of the checks of lds: problems, other ways to the same numbers, searches."""
