import json
import os
import platform
import shutil
import subprocess
from importlib import metadata

import pytest

from icl.runs import documents, provenance


def test_names_what_it_ran_on():
    found = json.loads(documents.dumps(provenance.provenance()))
    assert set(found) == {"git", "versions", "hardware", "threads", "host", "instruction_set"}
    assert found["instruction_set"] in (None, "baseline", "avx2", "avx512")
    assert found["versions"]["python"] == platform.python_version()
    assert found["versions"]["numpy"] == metadata.version("numpy")
    assert set(found["versions"]) == {"python", "torch", "numpy", "lightning", "hydra", "icl"}
    assert found["hardware"]["cpu"] and found["hardware"]["cores"] >= 1
    assert found["hardware"]["memory_bytes"] > 2**28


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
    index = (tmp_path / ".git/index").read_bytes()
    os.utime(package / "a.py", (1, 1))
    assert state(package)["dirty"] is False and (tmp_path / ".git/index").read_bytes() == index, "is written"
    (package / "a.py").write_text("x = 2\n")
    assert state(package)["dirty"] is True
    monkeypatch.setenv("PATH", str(tmp_path))
    assert state(package) is None, "no git"
