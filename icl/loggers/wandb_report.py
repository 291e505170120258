"""A W&B Report over what has been uploaded, with the panels worth pinning, by wandb-workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.config.logger import LoggerSettings
from icl.errors import InputError
from icl.loggers.wandb_run import kept_under

if TYPE_CHECKING:
    import wandb_workspaces.reports.v2 as wr

CURVES = ("exact_risk", "risk_estimate", "loss", "gradient_norm", "dist_preconditioned")
WEIGHTS = ("A", "B", "P", "Q", "v")


def require_workspaces() -> Any:
    """Return the library, or raise InputError with the way to install it."""
    try:
        import wandb_workspaces.reports.v2 as library
    except ImportError:
        raise InputError(
            "wandb=true: needs wandb-workspaces, which is not installed (pip install 'icl-theory[report]')"
        ) from None
    return library


def saved(report: wr.Report, outputs: Path) -> str:
    """Address of the report on the server."""
    with kept_under(outputs / "wandb"):
        return str(report.save().url)


def drafted(logger: LoggerSettings, outputs: Path, scale: str, figures: Mapping[str, list[str]]) -> wr.Report:
    """Save `report` as a draft, if the server can be reached."""
    require_workspaces()
    with kept_under(outputs / "wandb"):
        return report(logger, scale, figures)


def report(logger: LoggerSettings, scale: str, figures: Mapping[str, list[str]]) -> wr.Report:
    """Build the report, with a part for each paper that has some of these `figures`."""
    wr = require_workspaces()
    where = {"entity": _entity(logger.entity), "project": logger.project}

    def grid(paper: str, kind: str, panels: list[Any]) -> Any:
        told = f"Tags in ['{paper}'] and Tags in ['{scale}'] and JobType == '{kind}'"
        return wr.PanelGrid(
            runsets=[wr.Runset(name=f"{paper}: {kind}", filters=told, **where)], panels=panels
        )

    blocks: list[Any] = []
    for paper, drawn in figures.items():
        curves = [
            wr.LinePlot(
                title=name,
                x="step",
                y=[f"mean/{name}", f"mean_band/{name}/low", f"mean_band/{name}/high"],
                log_y=True,
            )
            for name in CURVES
        ]
        gallery = wr.MediaBrowser(title="weights", media_keys=[f"weights/{name}" for name in WEIGHTS])
        pictures = wr.MediaBrowser(title="figures", media_keys=drawn)
        blocks += [
            wr.H1(text=paper),
            wr.H2(text="Checks"),
            grid(paper, "check", [wr.WeavePanelSummaryTable(table_name="verdicts")]),
            wr.H2(text="Figures"),
            grid(paper, "figure", [pictures, wr.WeavePanelSummaryTable(table_name="claims")]),
            wr.H2(text="Training"),
            grid(paper, "train", [*curves, gallery]),
        ]
    told = "Verdicts, figures and training runs that have been uploaded; a band is least and greatest seed."
    return wr.Report(
        title=f"icl at {scale}", description=told, blocks=[wr.TableOfContents(), *blocks], **where
    )


def _entity(given: str | None) -> str:
    """Return the entity given, or that of the login; raise InputError if there is neither."""
    import wandb

    try:
        own = wandb.Api().default_entity
    except (wandb.Error, ValueError) as error:
        raise InputError(f"wandb=true: W&B cannot be reached ({str(error).splitlines()[0]})") from None
    if not (given or own):
        raise InputError("wandb=true: no W&B entity; logger.entity=NAME gives one")
    return given or str(own)
