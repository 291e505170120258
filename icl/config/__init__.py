"""From YAML to objects: configs are composed here, and end here as plain settings."""

from icl.config.objects import instantiate, target_class
from icl.config.places import SCALES, Configs, conf_dir
from icl.config.values import resolved_seeds

__all__ = ["SCALES", "Configs", "conf_dir", "instantiate", "resolved_seeds", "target_class"]
