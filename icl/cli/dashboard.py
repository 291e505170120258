"""`icl dashboard`: the workspace and the report of W&B as JSON, and, if asked for, at the server."""

import json
import os
from collections.abc import Sequence

from icl.cli.output import emit
from icl.cli.quick import read_arguments
from icl.errors import InputError
from icl.jobs.exit_codes import OK


def command(args: Sequence[str]) -> int:
    from icl import catalog
    from icl.loggers.dashboard import CHARTS, Dashboard
    from icl.loggers.wandb_run import default_entity
    from icl.runs import atomic

    place = {key: os.environ.get(f"WANDB_{key.upper()}", "") for key in ("entity", "project")}
    asked = read_arguments(args, **{**place, "project": place["project"] or "icl"}, save="false")
    known = [entry.id for entry in catalog.entries("experiment", asked.configs)]
    only = "".join(asked.others[:1])
    if asked.others[1:] or "=" in only:
        raise InputError(f"{asked.others[-1]}: icl dashboard takes EXPERIMENT, entity=, project=, save=true")
    if only:
        asked.configs.one_option("experiment", only)
    saves, project = asked.settings["save"] == "true", asked.settings["project"]
    found = default_entity(asked.outputs) if saves else ""
    entity, papers = asked.settings["entity"] or found, asked.configs.options("paper")
    made = Dashboard(entity, project, known, papers, only)
    folder = asked.outputs / "dashboard"
    for name, document in made.documents().items():
        content = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        atomic.write_once(asked.outputs, folder / f"{name}.json", content.encode())
    document = {
        "workspace": str(folder / "workspace.json"),
        "report": str(folder / "report.json"),
        "charts": [str(folder / "charts" / f"{name}.json") for name in CHARTS],
        "saved": made.save() if saves else None,
    }
    shown = document["saved"] or {name: document[name] for name in ("workspace", "report")}
    text = "\n".join(f"{name}: {place}" for name, place in shown.items())
    emit(document, lambda: print(text), asked.settings["format"])
    return OK
