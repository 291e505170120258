"""Run tasks as submitit jobs, on Slurm or in processes of this machine (`cluster=`).

When a job's time is over it receives a signal, saves its state and is queued again by submitit, up to
`requeues` times.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from icl.config.objects import settings_of
from icl.errors import InputError, Interrupted, one_line, one_of, whole
from icl.events import Listener, StateChanged, WorkItem, quiet
from icl.jobs.execution.task import QueuedRequest, run_task
from icl.runs import atomic

ENGINES = ("slurm", "local")
REQUEUES = 5  # of a local job; submitit starts it six times at most
_POLL = 0.2  # seconds


@dataclass(frozen=True)
class Cluster:
    """Resources of each job, from `cluster.*`."""

    engine: str
    minutes: int
    cpus: int = 1
    grace: int = 30
    requeues: int = REQUEUES
    parallel: int = 256
    partition: str | None = None
    account: str | None = None
    gpus: int | None = None
    memory_gb: int | None = None
    setup: Sequence[str] = ()
    additional: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of("cluster.engine", self.engine, ENGINES)
        for key, low in (("minutes", 1), ("cpus", 1), ("grace", 1), ("requeues", 0), ("parallel", 1)):
            whole(f"cluster.{key}", getattr(self, key), low)
        for key in ("gpus", "memory_gb"):
            if getattr(self, key) is not None:
                whole(f"cluster.{key}", getattr(self, key), 1)
        if self.grace >= 60 * self.minutes:
            raise InputError(f"cluster.grace={self.grace}: must be less than cluster.minutes in seconds")

    def executor(self, folder: Path) -> Any:
        """Return submitit's executor, which keeps its files in `folder`."""
        try:
            import submitit
        except ImportError:
            raise InputError("cluster: submitit is not installed; pip install 'icl-theory[slurm]'") from None
        if self.engine == "local":
            made = submitit.LocalExecutor(folder, max_num_timeout=self.requeues)
            made.update_parameters(timeout_min=self.minutes, signal_delay_s=self.grace, tasks_per_node=1)
            return made
        on_slurm = submitit.SlurmExecutor(folder, max_num_timeout=self.requeues)
        options = {
            "partition": self.partition, "account": self.account, "gpus_per_node": self.gpus,
            "mem": None if self.memory_gb is None else f"{self.memory_gb}GB", "cpus_per_task": self.cpus,
            "time": self.minutes, "signal_delay_s": self.grace, "setup": list(self.setup) or None,
            "additional_parameters": dict(self.additional) or None, "job_name": "icl",
        }  # fmt: skip
        on_slurm.update_parameters(**{name: value for name, value in options.items() if value is not None})
        return on_slurm


def cluster_of(node: Any) -> Cluster | None:
    """Parse `cluster=...`, which may be null."""
    if node is None:
        return None
    if not isinstance(node, Mapping):
        raise InputError(f"cluster={node}: must be one of {', '.join(ENGINES)}")
    return settings_of(Cluster, "cluster", node)


def parse_cluster(node: Any) -> Cluster | None:
    """Parse `cluster=...` and validate that jobs can be submitted from this machine."""
    found = cluster_of(node)
    if found is not None and found.engine == "slurm" and not all(map(shutil.which, ("sbatch", "srun"))):
        raise InputError("cluster=slurm: no sbatch and srun here; cluster=local needs none")
    return found


def run_on_cluster(cluster: Cluster, tasks: Sequence[QueuedRequest], on_event: Listener) -> None:
    """Run every task as a job, at most `parallel` at a time; tasks that share training runs go one by one."""
    if not tasks:
        return
    outputs = tasks[0].session.outputs
    with atomic.writing(outputs):
        (outputs / "cache").mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="cluster-", dir=outputs / "cache"))
    executor, waiting = cluster.executor(folder / "%j"), list(tasks)
    under_way: list[tuple[QueuedRequest, Any]] = []
    died = False
    try:
        while waiting or under_way:
            taken = {task.runs_key for task, _ in under_way if task.runs_key}
            ready = next((i for i, task in enumerate(waiting) if task.runs_key not in taken), None)
            if ready is not None and len(under_way) < cluster.parallel:
                task = waiting.pop(ready)
                under_way.append((task, executor.submit(_Job(_picklable(task), cluster.cpus))))
                on_event(StateChanged(task.item, "running"))
                continue
            over = [one for one in under_way if one[1].done()]
            under_way = [one for one in under_way if one not in over]
            for task, job in over:
                event = _job_result(job, task.item)
                died |= event.state == "died"
                on_event(replace(event, state="failed") if event.state == "died" else event)
            time.sleep(0 if over else _POLL)
    except BaseException:
        for _, job in under_way:
            job.cancel(check=False)
        raise
    if not died:
        shutil.rmtree(folder, ignore_errors=True)


def _picklable(task: QueuedRequest) -> QueuedRequest:
    """Return a copy that pickles: without what validation built, and without listeners."""
    return replace(task, request=replace(task.request), session=replace(task.session, on_event=quiet))  # type: ignore[type-var]


def _job_result(job: Any, item: WorkItem) -> StateChanged:
    try:
        found: StateChanged = job.result()
        return found
    except Exception as error:  # submitit's, whose text is the job's whole log
        reason = one_line(error).split(". ")[0][:200]
        return StateChanged(item, "died", text=f"its job died: {reason}; {job.paths.stderr}")


class _Job:
    """A task as submitit's callable; `checkpoint` returns the task again when the job's time is over."""

    def __init__(self, task: QueuedRequest, cpus: int) -> None:
        self.task, self.cpus = task, cpus

    def __call__(self) -> StateChanged:
        os.environ.setdefault("OMP_NUM_THREADS", str(self.cpus))  # torch reads it when it is imported
        with requeue_on_timeout():
            return run_task(self.task)

    def checkpoint(self) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@contextlib.contextmanager
def requeue_on_timeout() -> Iterator[None]:
    """Let a submitit job whose time is over save its state before it is queued again."""
    from icl.training.interrupts import end_of_job

    signum = end_of_job()
    queue_again = signal.getsignal(signum) if signum is not None else None
    if signum is None or not callable(queue_again) or not _in_main_thread():
        yield
        return
    signal.signal(signum, _interrupt)
    try:
        yield
    except Interrupted as error:
        signal.signal(signum, queue_again)
        if error.signum == signum:
            queue_again(signum, None)  # ends the process, or raises after the last requeue
        raise
    finally:
        signal.signal(signum, queue_again)


def _interrupt(signum: int, _: Any) -> None:
    raise Interrupted(signum)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
