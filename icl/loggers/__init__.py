"""Loggers of Lightning's. A logger is never the source of a figure."""
