"""The arguments of verbs that do without Hydra."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from icl.config.search_path import ConfigDirs
from icl.errors import InputError, one_of


class Arguments(NamedTuple):
    """Settings of the verb by name, all other arguments, and where records and configs are."""

    settings: dict[str, str]
    others: list[str]
    outputs: Path
    configs: ConfigDirs


def read_arguments(args: Sequence[str], **own: str) -> Arguments:
    """Read the settings of a verb, of which `own` are the defaults."""
    settings, others, rest = {"format": "text", "paths.outputs": "", **own}, [], list(args)
    folder = None
    while rest:
        key, given, value = (arg := rest.pop(0)).partition("=")
        if key in ("--config-dir", "-cd"):
            folder = value if given else rest.pop(0) if rest else ""
        elif given and key in settings:
            settings[key] = value.strip("'\"")
            if not settings[key]:
                raise InputError(f"{arg}: must have a value")
        else:
            others.append(arg)
    one_of("format", settings["format"], ("text", "json"))
    for key in settings.keys() & {"yes", "save"}:
        one_of(key, settings[key], ("true", "false"))
    configs = ConfigDirs.of(folder)
    outputs = Path(settings["paths.outputs"] or configs.default_outputs()).expanduser().absolute()
    return Arguments(settings, others, outputs, configs)
