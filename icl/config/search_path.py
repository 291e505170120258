"""Folders of configs. Nothing heavy is imported, so that `icl list` stays fast."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from icl.config import allowed_packages
from icl.errors import InputError, nearest, one_line
from icl.resolver import SCALES

__all__ = ["SCALES", "TORCHRUN", "ConfigDirs", "conf_dir"]

TORCHRUN = "TORCHELASTIC_RUN_ID"  # is in the environment of what torchrun has started
LOCAL = Path("local", "default.yaml")  # in ./conf, or in the folder of --config-dir: one machine's settings
SCHEME = "icl"  # of a folder of configs that icl reads itself
FOLDER_SCHEMES = ("file", SCHEME)
_MOST_CHOICES_SHOWN = 24


def conf_dir() -> Path:
    """Return the folder of shipped configs: `icl/conf` in a wheel, in a checkout `conf` next to `icl`."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "conf"
    return installed if (installed / "base.yaml").is_file() else package.parent / "conf"


def insist_on_folders(searchpath: Any) -> None:
    """Refuse an entry of hydra.searchpath that is neither a folder nor in an allowed package: Hydra imports
    what follows pkg:// and structured://."""
    for entry in searchpath if isinstance(searchpath, Sequence) and not isinstance(searchpath, str) else ():
        scheme, mark, rest = str(entry).rpartition("://")
        module = rest.strip("/").replace("/", ".")
        if mark and scheme not in FOLDER_SCHEMES and not allowed_packages.is_allowed(module):
            raise InputError(
                f"hydra.searchpath={entry}: must be a folder (file://...) or in an allowed package "
                "(ICL_PACKAGES=mylab adds one): Hydra imports it"
            )


@dataclass(frozen=True)
class ConfigDirs:
    """Folders of configs: shipped ones, those of installed packages and, with --config-dir, a user's."""

    user: Path | None = None
    installed: tuple[Path, ...] = ()

    @classmethod
    def of(cls, folder: str | PathLike[str] | None) -> ConfigDirs:
        """Return the config folders, with those of installed packages."""
        found = tuple(
            conf for conf in map(allowed_packages.conf_of, allowed_packages.installed()) if conf is not None
        )
        if folder is None:
            return cls(None, found)
        if not Path(folder).is_dir():
            raise InputError(f"--config-dir {folder}: no such folder")
        return cls(Path(folder).absolute(), found)

    @property
    def folders(self) -> list[Path]:
        return [conf_dir(), *self.installed, *([] if self.user is None else [self.user])]

    @property
    def groups(self) -> set[str]:
        folders = {path.name for folder in self.folders for path in folder.iterdir() if path.is_dir()}
        return {name for name in folders if not name.startswith((".", "_")) and name != LOCAL.parent.name}

    @property
    def local(self) -> Path | None:
        """Return the file of this machine's own settings, if there is one."""
        places = [folder / LOCAL for folder in (self.user, Path("conf").absolute()) if folder is not None]
        return next((path for path in places if path.is_file()), None)

    def default_outputs(self) -> str:
        """Return `paths.outputs` of this machine, for commands that compose no config."""
        if self.local is None:
            return "outputs"
        from omegaconf import OmegaConf

        try:
            found = OmegaConf.select(OmegaConf.create(OmegaConf.load(self.local)), "paths.outputs")
        except Exception as error:  # of YAML, or a variable that is not set
            raise InputError(f"{self.local}: {one_line(error)}") from None
        return str(Path(found or "outputs").expanduser())

    def files(self) -> Iterator[tuple[Path, str]]:
        """Yield every file of every folder, and its path there."""
        for folder in self.folders:
            found = ((path, path.relative_to(folder)) for path in folder.rglob("*.yaml"))
            yield from ((path, place.as_posix()) for path, place in found if place.parent != LOCAL.parent)

    def digest(self) -> str:
        """Return the digest of all configs, ours and the user's."""
        digest = hashlib.sha256()
        for path, name in sorted(self.files(), key=lambda file: (file[1], file[0])):
            content = path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()[:16]

    def options(self, group: str) -> list[str]:
        """Return every option of a config group, nested ones included."""
        places = [folder / group for folder in self.folders]
        paths = {
            path.relative_to(place).with_suffix("") for place in places for path in place.rglob("*.yaml")
        }
        return sorted(path.as_posix() for path in paths)

    def text(self, group: str, option: str) -> str:
        """Return the text of an option's file, the user's if there are several."""
        paths = [folder / group / f"{option}.yaml" for folder in reversed(self.folders)]
        return next((path.read_text(encoding="utf-8") for path in paths if path.is_file()), "")

    def one_option(self, group: str, name: str) -> str:
        """`name`, or an error that says what there is instead."""
        choices = self.options(group)
        if name in choices:
            return name
        if not choices:
            raise InputError(f"{group}={name}: no such config")
        shown = ", ".join(choices[:_MOST_CHOICES_SHOWN])
        rest = f", ... ({len(choices)})" if len(choices) > _MOST_CHOICES_SHOWN else ""
        raise InputError(f"{group}={name}: no such option (one of: {shown}{rest}){nearest(name, choices)}")
