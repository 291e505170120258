"""Machinery of the checks of giannou: problems, other ways to the same numbers, searches."""
