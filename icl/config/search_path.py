"""Folders of configs: ours, a user's, and those of packages that the entry point `icl.packages` names:

    [project.entry-points."icl.packages"]
    mylab = "mylab"

The folder mylab/conf then counts beside ours. Nothing heavy is imported, so that `icl list` stays fast.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self

from icl.errors import InputError, nearest, one_line, suggest

LOCAL = Path("local", "default.yaml")  # in a folder of configs: settings of one machine
GROUP_OF = {"check": "check", "figure": "figure", "train": "experiment"}  # what icl list shows


def conf_dir() -> Path:
    """Return the folder of shipped configs: `icl/conf` in a wheel, in a checkout `conf` next to `icl`."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "conf"
    return installed if (installed / "base.yaml").is_file() else package.parent / "conf"


@functools.cache
def about_statements(what: str) -> dict[str, Any]:
    """Return, by id and without an import, `index`: title, reference and claim of every statement, or
    `joined`: the checks that are a part of another one."""
    place = Path(__file__).parents[1] / "checks" / f"{what}.json"
    return dict(json.loads(place.read_text(encoding="utf-8")))


def installed() -> tuple[str, ...]:
    """Return the names of the packages that declare the entry point."""
    return tuple(sorted({entry.module for entry in importlib.metadata.entry_points(group="icl.packages")}))


def require_known(key: str, node: Any) -> None:
    """Refuse to build from a record, which is data, what is neither of icl nor of an installed package."""
    if isinstance(node, Mapping):
        name = node.get("_target_", "icl.")
        known = [f"{package}." for package in ("icl", *installed())]
        if not isinstance(name, str) or not name.startswith(tuple(known)):
            raise InputError(
                f"{key}._target_={name}: a record builds only classes of icl and of installed packages "
                "(docs/howto/add.md)"
            )
        for inner, value in node.items():
            require_known(f"{key}.{inner}", value)


def confs_of_packages() -> list[Path]:
    """Return the folders of installed packages that have one, which Hydra searches after ours."""
    found = []
    for package in installed():
        top, *inner = package.split(".")
        with contextlib.suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(top)
            places = (spec and spec.submodule_search_locations) or []
            found += [Path(place).joinpath(*inner, "conf").absolute() for place in places]
    return [folder for folder in found if folder.is_dir()]


@dataclass(frozen=True)
class ConfigDirs:
    """Folders of configs: shipped ones, those of installed packages, and with --config-dir a user's. Where
    several have an option of one name, the first does."""

    user: Path | None = None

    @classmethod
    def of(cls, folder: str | PathLike[str] | None) -> Self:
        if folder == "" or (folder is not None and not Path(folder).is_dir()):
            raise InputError(f"--config-dir {folder}: no such folder")
        return cls(None if folder is None else Path(folder).absolute())

    @functools.cached_property
    def folders(self) -> list[Path]:
        return [conf_dir(), *confs_of_packages(), *filter(None, [self.user])]

    @property
    def groups(self) -> set[str]:
        folders = {path.name for folder in self.folders for path in folder.iterdir() if path.is_dir()}
        return {name for name in folders if not name.startswith((".", "_")) and name != LOCAL.parent.name}

    def default_outputs(self) -> str:
        """Return `paths.outputs` of this machine, for commands that compose no config."""
        local = next((folder / LOCAL for folder in self.folders if (folder / LOCAL).is_file()), None)
        if local is None:
            return "outputs"
        from omegaconf import OmegaConf

        try:
            found = OmegaConf.select(OmegaConf.create(OmegaConf.load(local)), "paths.outputs")
        except Exception as error:  # of YAML, or a variable that is not set
            raise InputError(f"{local}: {one_line(error)}") from None
        return str(Path(found or "outputs").expanduser())

    def digest(self) -> str:
        """Return the digest of all configs, ours and the user's."""
        files = [
            (path.relative_to(folder), path) for folder in self.folders for path in folder.rglob("*.yaml")
        ]
        digest = hashlib.sha256()
        for place, path in sorted(file for file in files if file[0].parent != LOCAL.parent):
            content = path.read_bytes()
            digest.update(f"{place.as_posix()}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()[:16]

    def options(self, group: str) -> list[str]:
        """Return every option of a config group, nested ones included."""
        places = [folder / group for folder in self.folders]
        paths = {
            path.relative_to(place).with_suffix("") for place in places for path in place.rglob("*.yaml")
        }
        return sorted(path.as_posix() for path in paths)

    def text(self, group: str, option: str) -> str:
        """Return the text of an option's file."""
        paths = [folder / group / f"{option}.yaml" for folder in self.folders]
        return next((path.read_text(encoding="utf-8") for path in paths if path.is_file()), "")

    def one_option(self, group: str, name: str) -> str:
        """`name`, or an error that says what there is instead."""
        choices = self.options(group)
        if name in choices:
            return name
        if not choices:
            raise InputError(f"{group}={name}: no such config")
        joined = about_statements("joined") if group == "check" else {}
        if found := joined.get(name):
            raise InputError(f"check={name}: is a part of another check now{suggest([found])}")
        folder, papers = name.rpartition("/")[0], sorted({one.partition("/")[0] for one in choices})
        if folder and folder not in papers and not nearest(name, choices):
            packages = ", ".join(installed()) or "none that declares itself"
            known = f"{', '.join(papers)}; installed packages: {packages}; --config-dir DIR has your own"
            raise InputError(f"{group}={name}: no {folder} here (there are {known})")
        elsewhere = [f"icl {verb} {name}" for verb, other in GROUP_OF.items() if name in self.options(other)]
        known = "icl list shows them" if group in GROUP_OF.values() else f"one of: {', '.join(choices)}"
        former = [of for one, of in joined.items() if one.endswith(f"/{name}")]
        meant = suggest(elsewhere) or nearest(name, choices) or suggest(former)
        raise InputError(f"{group}={name}: no such option ({known}){meant}")
