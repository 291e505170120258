"""Settings and fixtures of all tests. Caches of other programs stay out of the user's home and the
repository; long tests come first. No test cuts the power, so none waits for the disk. SIGINT acts as in a
terminal.
"""

import os
import signal
import tempfile

import hypothesis
import pytest

CACHES = (
    "HYPOTHESIS_STORAGE_DIRECTORY",
    "MPLCONFIGDIR",
    "WANDB_ARTIFACT_DIR",
    "WANDB_CACHE_DIR",
    "WANDB_CONFIG_DIR",
    "WANDB_DATA_DIR",
    "WANDB_DIR",
)


def pytest_configure(config: pytest.Config) -> None:
    """Make one directory for the whole run: xdist's workers inherit their parent's environment. They share
    the cores, so a command takes one unless a test says `jobs`. Hypothesis tries the same examples every
    time."""
    hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
    hypothesis.settings.load_profile("repeatable")
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"
    os.fsync = lambda descriptor: None
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    if hasattr(config, "workerinput"):
        return
    directory = tempfile.TemporaryDirectory(prefix="icl-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(directory.cleanup)
    for name in CACHES:
        os.environ[name] = os.path.join(directory.name, name.lower())
        os.mkdir(os.environ[name])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort long tests first, so that the other processes have enough to do meanwhile."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
