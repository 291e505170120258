"""The work of `icl bench`: measurements of speed and of error rates, one after another."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from icl.config.search_path import SCALES
from icl.errors import one_of, whole
from icl.jobs.requests.request import Document
from icl.runs.provenance import hardware

BENCHES = ("train", "sweep", "store", "ahn", "xie", "lds", "giannou", "paper", "calibration")


@dataclass(frozen=True)
class BenchRequest:
    name: str
    repeats: int
    threads: int | None  # null: as torch chooses


def parse(settings: Mapping[str, Any]) -> BenchRequest:
    one_of("format", settings["format"], ("text", "json"))
    one_of("scale", settings["scale"], SCALES)
    threads = None if settings["threads"] is None else whole("threads", settings["threads"], 1, 4096)
    return BenchRequest(
        one_of("bench", settings["bench"], BENCHES), whole("repeats", settings["repeats"], 1), threads
    )


def run_benchmarks(request: BenchRequest, report: Callable[[dict[str, Any]], None]) -> Document:
    """Measure each row, and call `report` on it at once."""
    import torch

    if request.threads is not None:
        torch.set_num_threads(request.threads)
    started, load = time.monotonic(), os.getloadavg()[0]
    rows: list[dict[str, Any]] = []
    for row in importlib.import_module(f"icl.bench.{request.name}").run(request.repeats):
        rows.append(row)
        report(row)
    threads_and_torch = {"threads": torch.get_num_threads(), "torch": torch.__version__}
    machine = {name: hardware()[name] for name in ("cpu", "cores")} | threads_and_torch | {"load": load}
    return {"bench": request.name, "rows": rows, "machine": machine, "seconds": time.monotonic() - started}
