"""Composition of configs, from YAML to plain settings."""

from icl.config.objects import instantiate, target_class
from icl.config.search_path import SCALES, ConfigDirs, conf_dir
from icl.config.values import resolve_seeds

__all__ = ["SCALES", "ConfigDirs", "conf_dir", "instantiate", "resolve_seeds", "target_class"]
