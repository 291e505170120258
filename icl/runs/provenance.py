"""Provenance of a record: code, versions and machine, whose name is not recorded."""

import functools
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

_DISTRIBUTIONS = {
    "torch": "torch", "numpy": "numpy", "lightning": "pytorch-lightning", "hydra": "hydra-core",
    "icl": "icl-theory",
}  # fmt: skip


def provenance() -> dict[str, Any]:
    """`git`, `versions`, `hardware` and `threads`, as they are now; of torch only where it is loaded: a
    record made without torch was made without its GPU."""
    torch = sys.modules.get("torch")
    has_gpu = torch is not None and torch.cuda.is_available()
    return {
        "git": git_state(Path(__file__).resolve().parent),
        "versions": {"python": platform.python_version()} | _versions(),
        "hardware": {"cpu": _cpu(), "gpu": torch.cuda.get_device_name() if torch and has_gpu else None},
        "threads": torch.get_num_threads() if torch is not None else None,
    }


@functools.cache
def git_state(folder: Path) -> Any:
    """`{"commit", "dirty"}`, or None where `folder` is no checkout of this code: an environment that lies in
    somebody else's repository is not."""
    if not _git(folder, "ls-files", "--", "."):
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return commit and {"commit": commit, "dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    # A status that renews git's index, and is killed at it, would leave a lock that stops the user's git.
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


@functools.cache
def _versions() -> dict[str, str]:
    return {name: metadata.version(distribution) for name, distribution in _DISTRIBUTIONS.items()}


@functools.cache
def _cpu() -> str:
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(named), platform.processor() or platform.machine())
