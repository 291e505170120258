"""The dashboard in W&B: a workspace and a report as JSON, and the charts that they show, which are files of
Vega-Lite in `vega`. W&B's own package writes the JSON, without a server unless it is saved."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any, NamedTuple

from icl.errors import Unavailable
from icl.loggers.names import CURVES, JUDGED, LAYERS, STEP, SWEEP, WEIGHTS

MISSING = "icl dashboard needs wandb-workspaces: pip install 'icl-theory[dashboard]'"
SADDLES = tuple(f"level/saddle_{k}" for k in (1, 2, 3))
SWEPT = ("optimizer.lr", "task.context", "task.dim", "model.layers", "train.batch")  # axes of a sweep's plot


class Chart(NamedTuple):
    """A chart of a table that runs log; its file in `vega` has the table's columns as fields."""

    title: str
    table: str
    columns: Sequence[str]


CHARTS = {
    "theorem": Chart("Is it at the theorem?", "curves", CURVES),
    "critical": Chart("A minimum or a saddle?", "curves", CURVES),
    "layers": Chart("Layers, trained and exact", "layers", LAYERS),
    "verdicts": Chart("Verdicts", "verdicts", JUDGED),
    "sweep": Chart("A sweep and its theory", "sweep", SWEEP),
}
TEXTS = {
    "Is it at the theorem?": "The exact risk on logarithmic axes beside exact levels: that of weights 0, of "
    "saddles where layers share scalars, and of the optimum. excess is the risk over the optimum, less 1.",
    "Critical point": "The norm of the population risk's gradient cannot tell a minimum from a saddle; the "
    "least eigenvalue of the exact Hessian can: below 0 it is a saddle.",
    "Layers": "Each layer's scalar while it trains, in rising order, beside that of the exact optimum.",
    "Weights": "All matrices on one scale, a picture a step.",
    "Verdicts": "What was measured, over its bound, and the control: a wrong statement that the same "
    "measurement rejects.",
    "Sweep": "Settings against the exact risk, which of them matters, and the exact optimum as a curve.",
    "Lineage": "The weights of every run of an experiment, and what was made from them.",
}


def spec_of(name: str) -> dict[str, Any]:
    """Return a chart's specification with the look that all share."""
    folder = files("icl") / "loggers" / "vega"
    config, spec = (json.loads((folder / f"{one}.json").read_text("utf-8")) for one in ("config", name))
    return {**spec, "config": config}


@dataclass(frozen=True)
class Dashboard:
    """Panels of a project's runs, or of an experiment's. Identifiers are numbers in order of place, so that
    the same dashboard is the same JSON."""

    entity: str
    project: str
    experiments: Sequence[str]
    papers: Sequence[str]
    only: str = ""  # one experiment

    @cached_property
    def _packages(self) -> tuple[Any, Any]:
        try:
            import wandb_workspaces.reports.v2 as reports
            import wandb_workspaces.workspaces as workspaces
        except ModuleNotFoundError:
            raise Unavailable(MISSING) from None
        return reports, workspaces

    @property
    def title(self) -> str:
        return f"icl: {self.only or 'what converges, and to what'}"

    def sections(self) -> dict[str, list[Any]]:
        """Return the panels by section."""
        wr, _ = self._packages
        log: dict[str, Any] = {"x": STEP, "log_x": True, "title_x": "step", "max_runs_to_show": 20}
        charts = {name: self._chart(name) for name in CHARTS}
        risk = ("mean/exact_risk", "level/null", *SADDLES, "level/optimum")
        columns = [wr.ParallelCoordinatesPlotColumn(metric=wr.Config(key)) for key in SWEPT]
        columns.append(wr.ParallelCoordinatesPlotColumn(metric=wr.SummaryMetric("exact_risk"), log=True))
        named = {"x": wr.Config("task.context"), "y": wr.SummaryMetric("exact_risk")}
        shown = [self.only] if self.only else self.experiments
        found = {
            "Is it at the theorem?": [
                wr.LinePlot(title="exact risk and its levels", y=[*risk], log_y=True, **log),
                wr.LinePlot(title="excess over the optimum", y=["excess"], log_y=True, **log),
                charts["theorem"],
            ],
            "Critical point": [
                wr.LinePlot(title="norm of the gradient", y=["mean/gradient_norm"], log_y=True, **log),
                wr.LinePlot(title="least eigenvalue of the Hessian", y=["hessian/least"], **log),
                charts["critical"],
            ],
            "Layers": [charts["layers"]],
            "Weights": [wr.MediaBrowser(title="weights", media_keys=[WEIGHTS], gallery_axis="step")],
            "Verdicts": [charts["verdicts"]],
            "Sweep": [
                wr.ParallelCoordinatesPlot(title="settings and the exact risk", columns=columns),
                wr.ParameterImportancePlot(with_respect_to="exact_risk"),
                wr.ScatterPlot(title="exact risk by n", log_x=True, log_y=True, **named),
                charts["sweep"],
            ],
            "Lineage": [
                wr.WeavePanelArtifact(artifact=one.replace("/", "-"), tab="lineage") for one in shown
            ],
        }
        for number, panel in enumerate(panel for panels in found.values() for panel in panels):
            panel._id = f"icl{number}"
            panel.layout = wr.Layout(x=number % 2 * 12, y=number // 2 * 9, w=12, h=9)
        return found

    def workspace(self) -> Any:
        """Return W&B's workspace: runs are grouped, sorted and coloured by paper and experiment."""
        _, ws = self._packages
        from wandb_workspaces import expr

        keys = [expr.Config("paper"), expr.Config("experiment")]
        colours = spec_of("theorem")["config"]["range"]["category"]
        runs = ws.RunsetSettings(
            groupby=keys,
            order=[*map(expr.Ordering, keys), expr.Ordering(expr.Summary("exact_risk"))],
            group_colors={paper: colours[i % len(colours)] for i, paper in enumerate(self.papers)},
            pinned_columns=["summary:exact_risk", "summary:excess", "summary:hessian/least"],
            filters=[keys[1] == self.only] if self.only else "",
        )
        made = ws.Workspace(
            entity=self.entity, project=self.project, name=self.title, runset_settings=runs,
            settings=ws.WorkspaceSettings(x_axis=STEP, max_runs=20),
            sections=[
                ws.Section(name=name, panels=panels, is_open=name != "Lineage")
                for name, panels in self.sections().items()
            ],
        )  # fmt: skip
        made._internal_runset_id = "iclruns"
        return made

    def report(self, *, saved: bool = False) -> Any:
        """Return W&B's report. Its runs name their project only where it is saved: W&B asks the server."""
        wr, _ = self._packages
        blocks = []
        for number, (name, panels) in enumerate(self.sections().items()):
            where = {"entity": self.entity, "project": self.project} if saved else {}
            runs = wr.Runset(
                **where,
                name="runs",
                groupby=["config.paper", "config.experiment"],
                filters=f"Config('experiment') = '{self.only}'" if self.only else "",
            )
            runs._id = f"iclruns{number}"
            blocks += [wr.H2(name), wr.P(TEXTS[name]), wr.PanelGrid(runsets=[runs], panels=panels)]
        return wr.Report(project=self.project, entity=self.entity, title=self.title, blocks=blocks)

    def documents(self) -> dict[str, Mapping[str, Any]]:
        """Return the files of the dashboard by name. W&B has no public way to the JSON that it saves."""
        models = {"workspace": self.workspace()._to_model(), "report": self.report()._to_model()}
        made = {
            name: model.model_dump(mode="json", by_alias=True, exclude_none=True)
            for name, model in models.items()
        }
        return made | {f"charts/{name}": spec_of(name) for name in CHARTS}

    def save(self) -> dict[str, str]:
        """Save charts, workspace and report at the server, and return the addresses of the last two."""
        import wandb

        api = wandb.Api()
        for name, chart in CHARTS.items():
            api.create_custom_chart(
                self.entity, f"icl-{name}", chart.title, "vega2", "private", spec_of(name)
            )
        saved = {"workspace": self.workspace().save(), "report": self.report(saved=True).save()}
        return {name: one.url for name, one in saved.items()}

    def _chart(self, name: str) -> Any:
        wr, _ = self._packages
        chart = CHARTS[name]
        made = wr.CustomChart.from_table(
            chart.table,
            chart_fields={column: column for column in chart.columns},
            chart_strings={"title": chart.title},
        )
        made.chart_name = f"{self.entity}/icl-{name}".lstrip("/")
        return made
