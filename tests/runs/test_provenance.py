import json
import os
import platform
import shutil
import subprocess
from importlib import metadata

import pytest

from icl.runs import documents, provenance


def test_names_what_it_ran_on_and_not_the_machine():
    found = json.loads(documents.dumps(provenance.provenance()))
    assert set(found) == {"git", "versions", "hardware", "threads"}
    assert set(found["versions"]) == {"python", "torch", "numpy", "lightning", "hydra", "icl"}
    assert found["versions"]["numpy"] == metadata.version("numpy")
    assert set(found["hardware"]) == {"cpu", "gpu"} and found["hardware"]["cpu"]
    assert platform.node() not in json.dumps(found)


def git(folder, *arguments):
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@example.org", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_state(tmp_path, monkeypatch):
    package = tmp_path / "icl"
    package.mkdir()
    (package / "a.py").write_text("x = 1\n")
    state = provenance.git_state.__wrapped__
    assert state(package) is None, "no repository"
    git(tmp_path, "init", "-q")
    assert state(package) is None, "inside a repository that does not hold it"
    git(tmp_path, "add", "icl")
    git(tmp_path, "commit", "-qm", "first")
    assert state(package) == {"commit": git(tmp_path, "rev-parse", "HEAD"), "dirty": False}
    (package / "a.py").write_text("x = 2\n")
    assert state(package)["dirty"] is True
    monkeypatch.setenv("PATH", str(tmp_path))
    assert state(package) is None, "no git"
