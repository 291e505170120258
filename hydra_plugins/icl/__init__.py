"""Hydra finds plugins only under this name; the work is done in icl.config.multirun."""
