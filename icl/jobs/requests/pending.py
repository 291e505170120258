"""Steps that may be left to do for a finished run: export its checkpoint, evaluate its checks, log it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from icl.config.session import Session
from icl.config.train_config import TrainConfig
from icl.jobs.requests.given_weights import of_run
from icl.jobs.requests.run_logs import RunLogs
from icl.jobs.requests.weight_checks import WeightCheck, evaluate
from icl.runs import atomic, layout
from icl.runs.documents import read_record
from icl.runs.record import VERDICTS, RunRecord, write_verdicts

if TYPE_CHECKING:
    from icl.training.plan import TrainingPlan


class RunRequest(Protocol):
    """A request for a training run, as far as its pending steps read it."""

    @property
    def config(self) -> TrainConfig: ...

    @property
    def weight_checks(self) -> tuple[WeightCheck, ...]: ...

    @property
    def logs(self) -> RunLogs: ...

    def plan(self, session: Session) -> TrainingPlan: ...


class PendingStep(Protocol):
    """A step that makes a finished run what a request wants."""

    def reason(self, request: RunRequest, record: RunRecord, session: Session) -> str:
        """Return why the step is left to do; empty if it is not."""

    def run(self, request: RunRequest, record: RunRecord, session: Session) -> RunRecord:
        """Do the step and return the record as it is then."""


class ExportCheckpoint:
    """Write the run's Lightning checkpoint, if it is wanted."""

    def reason(self, request: RunRequest, record: RunRecord, session: Session) -> str:
        is_there = not request.config.checkpoint or (record.path / layout.LIGHTNING).exists()
        return "" if is_there else f"{layout.LIGHTNING} is not written yet"

    def run(self, request: RunRequest, record: RunRecord, session: Session) -> RunRecord:
        from icl.training.lightning_checkpoint import export

        with atomic.writing(session.outputs):
            export(record)
        return record


class EvaluateChecks:
    """Add the verdicts that the run's record lacks, or that other code gave."""

    def reason(self, request: RunRequest, record: RunRecord, session: Session) -> str:
        names = [check.check for check in self._missing(request, record)]
        return f"not evaluated yet: {', '.join(names)}" if names else ""

    def run(self, request: RunRequest, record: RunRecord, session: Session) -> RunRecord:
        path = record.path / VERDICTS
        if path.exists() and read_record(path) is None:
            session.info(f"{path}: is damaged; its checks are evaluated again")
        new = evaluate(self._missing(request, record), of_run(record.path))
        names = {verdict["check"] for verdict in new}
        kept = [verdict for verdict in record.verdicts if verdict["check"] not in names]
        with atomic.writing(session.outputs):
            write_verdicts(record.path, record.run, [*kept, *new])
        return RunRecord(record.path, record.run)  # the old one has read its verdicts

    def _missing(self, request: RunRequest, record: RunRecord) -> list[WeightCheck]:
        if record.run.get("diverged"):
            return []  # verdicts would be about other seeds than those wanted
        known = {verdict["question"] for verdict in record.verdicts}
        return [check for check in request.weight_checks if check.fingerprint not in known]


class Log:
    """Log the run from its record, if the loggers lack it."""

    def reason(self, request: RunRequest, record: RunRecord, session: Session) -> str:
        return "" if request.logs.marker(record, session).is_there else "not logged yet"

    def run(self, request: RunRequest, record: RunRecord, session: Session) -> RunRecord:
        marker = request.logs.marker(record, session)
        with marker.alone(session.info):
            if not marker.is_there:  # another process may have logged it in the meantime
                with request.logs.observers(request.plan(session), session, record.run["attempt"]) as open_:
                    for observer in open_:
                        observer.replay(record)
        return record


FINALIZE: tuple[PendingStep, ...] = (ExportCheckpoint(), EvaluateChecks())
PENDING: tuple[PendingStep, ...] = (*FINALIZE, Log())
