"""Documents of checks, figures and sweeps in W&B: a run of each that was made, if `logger` lists W&B."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.errors import one_line
from icl.loggers.names import JUDGED, name_of_overrides
from icl.loggers.wandb_run import close_run, open_run
from icl.redact import redact
from icl.text import measurement

_SETTINGS = ("project", "entity", "name", "group", "job_type", "notes", "settings")


def log_document(
    request: Any,
    session: Any,
    *,
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    table: tuple[str, Sequence[str], Sequence[Sequence[object]]],
    picture: tuple[str, Path] | None = None,
    name: str = "",
) -> None:
    """Log the document of a request: `table` is a name, columns and rows, `picture` a caption and a PNG. A
    failure of W&B is said in one line; the record does not depend on it."""
    node: Mapping[str, Any] | None = session.logger.get("wandb")
    if node is None:
        return
    kind, paper, notify = request.kind, request.id.partition("/")[0], session.info
    run_id = f"{kind}-{request.id.replace('/', '-')}-{request.identity}"
    name, group = name or name_of_overrides(request.id, session.overrides), f"{paper}-{request.scale}"
    names: dict[str, Any] = {"name": name, "group": session.group or group, "job_type": kind}
    names |= {key: node[key] for key in _SETTINGS if node.get(key) is not None}
    tags = [paper, request.scale, *(node.get("tags") or [])]
    settings = names.pop("settings", None)
    how = (node["save_dir"], node["mode"], node["init_timeout"])
    try:
        import wandb

        run = open_run(
            save_dir=how[0], mode=how[1], init_timeout=how[2], settings=settings, notify=notify,
            id=run_id, tags=tags, config={"paper": paper, **config}, **names,
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


def verdict_row(document: Mapping[str, Any]) -> list[Any]:
    """Return a check's row of the table `verdicts`: measured number, bound and control in one unit."""
    bound, control = document["bound"], document["control"]
    measured, limit = document["measured"].get(bound["of"]), bound["value"]
    compared = isinstance(measured, int | float) and isinstance(control["measured"], int | float)
    beyond = control["measured"] if compared else None
    if beyond is not None and limit:  # a control of a limit is what it has beyond it; of weights, in limits
        beyond = limit + beyond * (limit if (document.get("settings") or {}).get("weights") else 1)
    found = {
        **{name: document[name] for name in ("check", "reference", "claim", "verdict", "expected")},
        "measured": float(measured) if isinstance(measured, int | float) else None,
        "direction": bound["direction"],
        "bound": limit,
        "control": beyond,
        "in_words": measurement(document),
        "control_in_words": f"{control['description']}: {control['measured']}",
    }
    return [found[name] for name in JUDGED]
