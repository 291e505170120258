"""Documents of checks, figures and sweeps in W&B: a run of each that was made, if `logger` lists W&B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.errors import one_line
from icl.loggers.names import name_of_overrides
from icl.loggers.wandb_run import close_run, open_run
from icl.redact import redact

_SETTINGS = ("project", "entity", "name", "group", "job_type", "notes", "settings")


def log_document(
    request: Any,
    session: Any,
    *,
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    table: tuple[str, Sequence[str], Sequence[Sequence[object]]],
    picture: tuple[str, Path] | None = None,
) -> None:
    """Log the document of a request: `table` is a name, columns and rows, `picture` a caption and a PNG. A
    failure of W&B is said in one line; the record does not depend on it."""
    node: Mapping[str, Any] | None = session.logger.get("wandb")
    if node is None:
        return
    kind, paper, notify = request.kind, request.id.partition("/")[0], session.info
    run_id = f"{kind}-{request.id.replace('/', '-')}-{request.identity}"
    name, group = name_of_overrides(request.id, session.overrides), f"{paper}-{request.scale}"
    names: dict[str, Any] = {"name": name, "group": session.group or group, "job_type": kind}
    names |= {key: node[key] for key in _SETTINGS if node.get(key) is not None}
    tags = [paper, request.scale, *(node.get("tags") or [])]
    settings = names.pop("settings", None)
    how = (node["save_dir"], node["mode"], node["init_timeout"])
    try:
        import wandb

        run = open_run(
            save_dir=how[0], mode=how[1], init_timeout=how[2], settings=settings, notify=notify,
            id=run_id, tags=tags, config=dict(config), **names,
        )  # fmt: skip
        title, columns, rows = table
        data = [list(redact(row)) for row in rows]
        shown: dict[str, Any] = {title: wandb.Table(columns=list(columns), data=data, allow_mixed_types=True)}
        if picture is not None:
            caption, path = picture
            shown[request.id] = wandb.Image(str(path), caption=caption)
        run.log(shown)
        run.summary.update(redact(dict(summary)))
        close_run(run, 0, notify)
    except Exception as error:
        reason = f"{type(error).__name__}: {redact(one_line(error))}"
        notify(f"icl: {request.id}: W&B has failed ({reason}); the record does not depend on it")
