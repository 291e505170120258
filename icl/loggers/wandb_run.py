"""W&B runs that are offline where no server takes them. All their files are under SAVE_DIR/wandb."""

import math
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.errors import InputError, one_line
from icl.redact import redact

Notify = Callable[[str], None]  # a line for the user

# What W&B would collect by itself: the command line, the environment, the code, what is printed, the machine
# and its name. `settings` turn it on again.
PRIVATE = {
    "console": "off",
    "disable_git": True,
    "disable_code": True,
    "save_code": False,
    "label_disable": True,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
    "host": "icl",
    "program": "icl",
}
_QUIET = {"silent": True, "quiet": True, "symlink": False, "use_dot_wandb": False, "reinit": "create_new"}
TIMEOUT = 15.0  # seconds that a server may take to answer
FINISH_TIMEOUT = 15.0  # seconds that uploads may take at the end; what is left is on disk
# A question that a server does not answer is asked for some seconds; what is sent, until the run is closed.
_BRIEFLY = {
    "x_graphql_retry_max": 2,
    "x_graphql_retry_wait_max_seconds": 2.0,
    "x_graphql_timeout_seconds": 10.0,
}
_has_failed = False  # the server, for this process, which then waits for it no more


def under_agent() -> bool:
    """Return whether a W&B agent has started this process for a run of its sweep."""
    return bool(os.environ.get("WANDB_SWEEP_ID"))


def quiet_wandb(folder: Path, timeout: float) -> Any:
    """Return wandb, which prints nothing and writes below `folder` alone."""
    # W&B reads these from the environment alone; the user's own win.
    os.environ.setdefault("WANDB_CACHE_DIR", str(folder / "wandb" / "cache"))
    os.environ.setdefault("WANDB_DATA_DIR", str(folder / "wandb" / "staging"))
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    os.environ.setdefault("WANDB_HTTP_TIMEOUT", str(math.ceil(timeout)))
    (folder / "wandb").mkdir(parents=True, exist_ok=True)
    import wandb

    wandb.setup(wandb.Settings(silent=True, quiet=True))
    return wandb


def default_entity(outputs: Path) -> str:
    """Return the entity of the key. No key, or one that a server refuses, is an InputError."""
    wandb = quiet_wandb(outputs, TIMEOUT)
    try:
        if not wandb.login(prompt=False, verify=True):
            raise InputError("save=true: no W&B key (`wandb login` or WANDB_API_KEY gives one)")
        return wandb.Api().default_entity or ""
    except wandb.Error as error:
        raise InputError(f"save=true: W&B refuses or cannot be reached ({error})") from None


def open_run(
    *,
    save_dir: str | Path,
    mode: str,
    init_timeout: float,
    settings: Mapping[str, Any] | None,
    notify: Notify,
    id: str | None,
    tags: Sequence[str],
    **names: Any,
) -> Any:
    """Open one run by `wandb.init`, beside others that are open; its secrets are hidden.

    An online one without a key or a server that answers is an offline one, and says so.
    """
    global _has_failed
    folder = Path(save_dir).absolute()
    wandb = quiet_wandb(folder, init_timeout)
    own = {**PRIVATE, **_BRIEFLY, **(settings or {}), **_QUIET, "root_dir": str(folder)}
    own |= {"init_timeout": init_timeout, "finish_timeout": FINISH_TIMEOUT, "finish_timeout_raises": True}
    typed = os.environ.get("WANDB_TAGS", "").split(",")
    names["tags"] = list(dict.fromkeys(tag for tag in [*tags, *typed] if tag))

    def opened(mode: Any, id: str | None) -> Any:
        resume: Any = "allow" if mode == "online" else None
        return wandb.init(mode=mode, id=id, resume=resume, settings=wandb.Settings(**own), **redact(names))

    if mode != "online" or _has_failed:
        return opened("offline" if mode == "online" else mode, id)
    asked = id
    try:
        # Asked before the run is opened, which would prompt for a key.
        if wandb.login(prompt=False, verify=True):
            return opened("online", asked)
        reason = "no W&B key (`wandb login` or WANDB_API_KEY gives one)"
    except wandb.Error as error:
        reason = f"W&B cannot be reached or refuses ({redact(one_line(error)).rstrip('.')})"
        asked = id and f"{id}-offline"  # W&B keeps the id of a run that did not open
    _has_failed = True
    run = opened("offline", asked)
    notify(f"icl: {reason}: continuing offline; {upload_of(run)}")
    return run


def close_run(run: Any, exit_code: int, notify: Notify) -> None:
    """Close a run; what a server has not taken in time stays on disk."""
    global _has_failed
    try:
        run.finish(exit_code=exit_code)
    except TimeoutError:
        _has_failed = True
        notify(f"icl: W&B did not take all data within {FINISH_TIMEOUT:g} s; {upload_of(run)}")


def upload_of(run: Any) -> str:
    """Return how what is on disk gets to a server, in words."""
    options = "" if run.offline else "--include-online "  # else it passes over runs that were opened online
    return f"upload with: wandb sync {options}{shlex.quote(str(Path(run.settings.sync_dir)))}"
