"""Hydra's own output for `icl VERB`: --cfg, --info, --hydra-help, completion."""

from __future__ import annotations

import argparse
import contextlib
import io
from typing import Any

from hydra.core.global_hydra import GlobalHydra

from icl.cli.flags import flag_parser
from icl.config.compose import hydra_session
from icl.config.search_path import ConfigDirs
from icl.errors import InputError

FLAGS = ("cfg", "info", "hydra_help", "shell_completion")


def show(verb: str, flags: argparse.Namespace, configs: ConfigDirs) -> None:
    with hydra_session(configs, verb, flags.overrides):
        hydra: Any = GlobalHydra.instance().hydra
        try:
            if flags.hydra_help:
                hydra.hydra_help(verb, flag_parser(), flags)
            elif flags.cfg:
                with contextlib.redirect_stderr(io.StringIO()):  # the message of a bad package
                    hydra.show_cfg(verb, flags.overrides, flags.cfg, flags.package, flags.resolve)
            elif flags.info:
                hydra.show_info(flags.info, verb, flags.overrides)
            else:
                hydra.shell_completion(verb, flags.overrides)
        except ValueError as error:
            raise InputError(f"icl {verb}: {error}") from error
        except SystemExit as error:
            raise InputError(
                f"--package {flags.package}: not in the config (icl {verb} --cfg {flags.cfg} shows it)"
            ) from error
