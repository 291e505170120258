"""Tests of what a built wheel and sdist hold, and of the wheel out of the repository's reach."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import icl

ROOT = Path(__file__).parents[2]


def build(kind: str, directory: Path) -> Path:
    script = f"import hatchling.build as b; print(b.build_{kind}({str(directory)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return directory / done.stdout.splitlines()[-1]


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    return directory


def test_wheel_holds_every_module_plugin_and_config_and_nothing_else(wheel: Path) -> None:
    modules = {
        path.relative_to(ROOT).as_posix()
        for package in ("icl", "hydra_plugins")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path != ROOT / "icl" / "conf.py"
    }
    configs = {f"icl/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "conf").rglob("*.yaml")}
    assert "hydra_plugins/icl/__init__.py" in modules
    assert "hydra_plugins/__init__.py" not in modules, "it would hide the launchers that other packages bring"
    assert "icl/conf/experiment/ahn/theorem3.yaml" in configs and "icl/py.typed" in modules
    assert contents(wheel) - {"icl/conf/__init__.py"} == modules | configs


def test_an_sdist_has_no_records_and_no_pictures(tmp_path: Path, wheel: Path) -> None:
    sdist = build("sdist", tmp_path)
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert not [name for name in names if name.startswith(("docs/records", "docs/img"))]
    assert max(sdist.stat().st_size, wheel.stat().st_size) < 5e6


def test_unpacked_wheel_is_found_with_its_plugins_and_experiments(unpacked: Path, tmp_path: Path) -> None:
    """Start a process that has the wheel ahead of the repository and runs elsewhere."""
    script = (
        "import icl, hydra_plugins.icl as ours, hydra_plugins.hydra_joblib_launcher\n"
        "from icl.cli import main\nprint(icl.__file__)\nprint(ours.__file__)\n"
        "assert main(['--version']) == main(['list', 'format=json']) == 0"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    package, plugins, version, listing = done.stdout.split("\n", 3)
    assert Path(package).is_relative_to(unpacked) and Path(plugins).is_relative_to(unpacked)
    assert icl.__version__ in version
    assert "ahn/theorem3" in {entry["id"] for entry in json.loads(listing)["experiments"]}
