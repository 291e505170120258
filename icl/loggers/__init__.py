"""Loggers beside the run store. Nothing here changes a number; training does not depend on it."""
