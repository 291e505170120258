"""Tests that the scripts parse; their shared set-up says what is missing and leaves no half-made
environment.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("bash", "cat", "dirname", "env", "mkdir", "mktemp", "mv", "rm", "touch")


def bash(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    if path is not None:
        environment["PATH"] = str(path)
    return subprocess.run(
        [str(shutil.which("bash")), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Make a PATH with the shell's tools and no Python."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for tool in TOOLS:
        (directory / tool).symlink_to(str(shutil.which(tool)))
    return directory


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Copy what set-up reads into a directory whose name has a space."""
    directory = tmp_path / "a clone"
    shutil.copytree(ROOT / "scripts", directory / "scripts")
    for name in ("constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, directory)
    return directory


def set_up(clone: Path, tools: Path, install: str = ":") -> subprocess.CompletedProcess[str]:
    """Run set-up with `install`, which would fetch packages, replaced."""
    script = f"""
        set -euo pipefail
        root=$1
        . "$root/scripts/setup.sh"
        install() {{ {install}; }}
        set_up ""
        "$env/bin/python" -c "import sys; print(sys.prefix)" >&2"""
    return bash("-c", script, "set-up", str(clone), path=tools)


def put_python(tools: Path, name: str, body: str) -> None:
    (tools / name).write_text(f"#!{shutil.which('bash')}\n{body}\n")
    (tools / name).chmod(0o755)


WORKING = """if [ "${2:-}" = venv ]; then
    "PYTHON" "$@" --without-pip || exit
    for site in "$3"/lib/python3*/site-packages; do mkdir "$site/pip"; done
    exit
fi
exec "PYTHON" "$@\""""


def working_python(tools: Path) -> None:
    """Make a Python whose environments have an empty folder of pip, which takes longest to unpack: nothing
    is installed here."""
    put_python(tools, "python3", WORKING.replace("PYTHON", sys.executable))


@pytest.mark.parametrize("script", ["scripts/setup.sh", "scripts/reproduce.sh", "scripts/test.sh", ".ci/run"])
def test_script_parses(script: str) -> None:
    done = bash("-n", str(ROOT / script))
    assert (done.returncode, done.stderr) == (0, "")
    assert script == "scripts/setup.sh" or os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize("script", ["reproduce.sh", "test.sh"])
def test_without_a_python_it_says_which_to_install(script: str, clone: Path, tools: Path) -> None:
    put_python(tools, "python3.12", "echo 'shim: no such version' >&2; exit 127")
    put_python(tools, "python3", "exit 1")
    done = bash(str(clone / "scripts" / script), path=tools)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Python 3.11, 3.12 or 3.13" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (clone / ".venv").exists()


def test_a_finished_environment_is_kept_until_the_pins_change(clone: Path, tools: Path) -> None:
    working_python(tools)
    first = set_up(clone, tools)
    assert first.returncode == 0 and "installing" in first.stderr and first.stdout == ""
    assert first.stderr.splitlines()[-1] == str(clone / ".venv")
    (clone / ".venv" / "kept").touch()
    assert "installing" not in set_up(clone, tools, "exit 9").stderr
    with open(clone / "constraints.txt", "a") as constraints:
        constraints.write("# another day\n")
    failed = set_up(clone, tools, "return 1")
    assert failed.returncode == 2 and "could not install" in failed.stderr
    assert "installing" in set_up(clone, tools).stderr
    assert (clone / ".venv" / "kept").exists()
