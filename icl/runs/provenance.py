"""Provenance of a record: code, versions and machine."""

from __future__ import annotations

import functools
import os
import platform
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from icl.kernel.library import instructions

_DISTRIBUTIONS = {
    "torch": "torch", "numpy": "numpy", "lightning": "pytorch-lightning", "hydra": "hydra-core",
    "icl": "icl-theory",
}  # fmt: skip


def provenance() -> dict[str, Any]:
    """`git`, `versions`, `hardware`, `threads`, `host` and `instruction_set` (of the kernel that was
    built here), as they are now."""
    torch = sys.modules.get("torch")
    return {
        "git": git_state(Path(__file__).resolve().parent),
        "versions": versions(),
        "hardware": hardware(),
        "threads": torch.get_num_threads() if torch is not None else None,
        "host": socket.gethostname(),
        "instruction_set": instructions(),
    }


@functools.cache
def versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name, distribution in _DISTRIBUTIONS.items():
        try:
            found[name] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


@functools.cache
def git_state(folder: Path) -> dict[str, Any] | None:
    """`{"commit", "dirty"}`, or None where `folder` is no checkout of this code: an environment that lies in
    somebody else's repository is not."""
    own = [name for name in os.listdir(folder) if name.endswith(".py")]
    if _git(folder, "ls-files", "--error-unmatch", "--", *own) is None:
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return None if commit is None else {"commit": commit, "dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    # A status that renews git's index, and is killed at it, would leave a lock that stops the user's git.
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def hardware() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cpu": _cpu_model(), "cores": cores, "gpu": _gpu(), "memory_bytes": _memory()}


@functools.cache
def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _gpu() -> str | None:
    """Name of the GPU, if torch is loaded: a record made without torch was made without its GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return str(torch.cuda.get_device_name(torch.cuda.current_device()))
