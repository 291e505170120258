"""Hydra finds plugins only under the name hydra_plugins; the work is done in icl.cli.multirun."""
