"""Documents of checks, figures and sweeps in W&B: a run of each that was made, if `logger` lists W&B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icl.errors import one_line
from icl.loggers.wandb_run import Notify, close_run, open_run
from icl.redact import redact

_SETTINGS = ("project", "entity", "name", "group", "job_type", "notes", "settings")


@dataclass(frozen=True)
class DocumentLog:
    """A document as W&B shows it: `table` is a name, columns and rows."""

    kind: str  # check | figure | sweep
    id: str
    identity: str
    name: str
    group: str
    tags: Sequence[str]
    config: Mapping[str, Any]
    summary: Mapping[str, Any]
    table: tuple[str, Sequence[str], Sequence[Sequence[object]]]
    picture: tuple[str, Path] | None = None  # a caption and a PNG


def log_document(loggers: Mapping[str, Mapping[str, Any]], log: DocumentLog, notify: Notify) -> None:
    """Log it. A failure of W&B is said in one line; the record does not depend on it."""
    node = loggers.get("wandb")
    if node is None:
        return
    run_id = f"{log.kind}-{log.id.replace('/', '-')}-{log.identity}"
    names: dict[str, Any] = {"name": log.name, "group": log.group, "job_type": log.kind}
    names |= {key: node[key] for key in _SETTINGS if node.get(key) is not None}
    tags = [*log.tags, *(node.get("tags") or [])]
    settings = names.pop("settings", None)
    how = (node["save_dir"], node["mode"], node["init_timeout"])
    try:
        import wandb

        run = open_run(
            save_dir=how[0], mode=how[1], init_timeout=how[2], settings=settings, notify=notify,
            id=run_id, tags=tags, config=dict(log.config), **names,
        )  # fmt: skip
        title, columns, rows = log.table
        data = [list(redact(row)) for row in rows]
        shown: dict[str, Any] = {title: wandb.Table(columns=list(columns), data=data, allow_mixed_types=True)}
        if log.picture is not None:
            caption, path = log.picture
            shown[log.id] = wandb.Image(str(path), caption=caption)
        run.log(shown)
        run.summary.update(redact(dict(log.summary)))
        close_run(run, 0, notify)
    except Exception as error:
        reason = f"{type(error).__name__}: {redact(one_line(error))}"
        notify(f"icl: {log.id}: W&B has failed ({reason}); the record does not depend on it")
