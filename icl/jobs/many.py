"""check=all, figure=ahn/all: all of a kind, or of a paper's, each as it stands in its config."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from icl.config.places import Configs
from icl.errors import InputError, Unavailable, nearest
from icl.events import Changed, Event, Listener, Planned
from icl.jobs.cluster import Cluster
from icl.jobs.kinds import named
from icl.jobs.request import Document, prepare
from icl.jobs.task import Task, task_of
from icl.jobs.workers import carry_out


def tasks_of(kind: str, which: str, overrides: Sequence[str], configs: Configs) -> list[Task]:
    """`which` is all or PAPER/all; `overrides` hold for each. All are validated; nothing has run."""
    tasks = [task_of(*named(kind, id, overrides, configs)) for id in _ids(kind, which, configs)]
    for task in tasks:
        with contextlib.suppress(Unavailable):  # said again, and listed, when its turn comes
            prepare(task.request, task.session)
    return tasks


def make(
    kind: str, tasks: Sequence[Task], jobs: int, listener: Listener, cluster: Cluster | None = None
) -> tuple[Document, int]:
    """Their documents, and how many have failed."""
    started = time.monotonic()
    ended: list[Changed] = []

    def tell(event: Event) -> None:
        listener(event)
        if isinstance(event, Changed) and event.state != "running":
            ended.append(event)

    listener(Planned(len(tasks), 0))
    carry_out(tasks, jobs, tell, cluster)
    documents = sorted((dict(e.document) for e in ended if e.document), key=lambda d: str(d[kind]))
    skipped = sorted((e.item.id, e.text) for e in ended if e.state == "skipped")
    document: Document = {
        f"{kind}s": documents,
        "skipped": [{"group": kind, "id": id, "reason": reason} for id, reason in skipped],
        "seconds": time.monotonic() - started,
    }
    return document, sum(event.state == "failed" for event in ended)


def _ids(kind: str, which: str, configs: Configs) -> list[str]:
    known = configs.options(kind)
    ids = [name for name in known if name.startswith(which.removesuffix("all"))]
    if not ids:
        papers = sorted({f"{name.partition('/')[0]}/all" for name in known})
        hint = f"{nearest(which, papers)} (one of: all, {', '.join(papers)})"
        raise InputError(f"{kind}={which}: no such {kind}s{hint}")
    return ids
