"""Launch of the processes of one run: environment, rendezvous, spawning and the workers' loop.

srun and torchrun start all of them. On one machine rank 0 starts the others once there is something to train
and sends them the work; the command is not run again.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
import torch.distributed as dist
from pytorch_lightning.plugins.environments import SLURMEnvironment
from torch.distributed.distributed_c10d import _set_pg_timeout

from icl.callbacks.metrics import MetricCallback
from icl.config import allowed_packages
from icl.config.search_path import TORCHRUN
from icl.config.train_config import TrainConfig
from icl.errors import InputError, Interrupted, one_line
from icl.training import loop
from icl.training.distributed import OtherRankFailed, ProcessGroup
from icl.training.plan import TrainingPlan

_COLLECTIVE_TIMEOUT = datetime.timedelta(
    days=1
)  # of the ranks that wait while rank 0 waits, measures or evaluates checks
_MEETING = datetime.timedelta(minutes=10)  # until all processes are there
_CONNECTING = datetime.timedelta(minutes=1)  # once they are
_SHUTDOWN_SECONDS = 10.0  # seconds
_PAUSE = 0.05
_COMMAND = """
import ast, signal, sys
for number in (signal.SIGINT, signal.SIGTERM):  # they are for the first process; imports take seconds
    signal.signal(number, signal.SIG_IGN)
sys.path[:] = ast.literal_eval(sys.argv[1])
from icl.training.launch import serve
serve()
"""
_INTERACTIVE = 2**32 - 16  # numbers from here on are of Slurm's steps that are no srun's
_current_group: ProcessGroup | None = (
    None  # of processes that another program started; a process is in one at most
)


class RankEnvironment(NamedTuple):
    """Rank and address of a process that srun or torchrun started."""

    size: int
    rank: int
    node: int
    on_node: int
    address: str


def detect_environment() -> RankEnvironment | None:
    """Return the rank environment of this process; None if it was started alone."""
    env = os.environ
    if TORCHRUN in env:  # also where srun has started it
        names = ("WORLD_SIZE", "RANK", "GROUP_RANK", "LOCAL_RANK")
        size, rank, node, on_node = (int(env[name]) for name in names)
        return RankEnvironment(size, rank, node, on_node, f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}")
    step = env.get("SLURM_STEP_ID", "")
    if step.isdigit() and int(step) < _INTERACTIVE and "SLURM_PROCID" in env:
        names = ("SLURM_NTASKS", "SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID")
        first = SLURMEnvironment.resolve_root_node_address(env.get("SLURM_NODELIST", "127.0.0.1"))
        port = 15000 + int(env["SLURM_JOB_ID"]) % 10000  # that other jobs on the node do not take
        address = f"{env.get('MASTER_ADDR', first)}:{env.get('MASTER_PORT', port)}"
        size, rank, node, on_node = (int(env.get(name, 0)) for name in names)
        return RankEnvironment(size, rank, node, on_node, address)
    return None


def launched_externally(processes: int, nodes: int) -> bool:
    """Return whether srun or torchrun started this process as one of `processes`. Raises InputError if it is
    one of another number, or if processes of other nodes are missing."""
    here = detect_environment()
    size = 1 if here is None else here.size
    if processes > 1 and size not in (1, processes):
        raise InputError(
            f"trainer.devices, trainer.num_nodes: need {processes} processes, {size} were started: "
            "start as many (srun --ntasks-per-node=DEVICES, torchrun), or use cluster=slurm"
        )
    if processes == 1 < size and TORCHRUN in os.environ:
        raise InputError(
            f"trainer.devices=1: torchrun has started {size} processes, which would each train the whole; "
            "trainer.devices says how many of them a node has, trainer.num_nodes how many nodes there are"
        )
    if nodes > 1 and size == 1:
        raise InputError(
            f"trainer.num_nodes={nodes}: the processes of the other nodes were not started; cluster=slurm, "
            "srun and torchrun do"
        )
    return processes > 1 and size > 1


@contextlib.contextmanager
def initialized_group() -> Iterator[ProcessGroup]:
    """Initialize the process group of externally launched ranks, before rank 0 knows the work."""
    global _current_group
    here = detect_environment()
    assert here is not None
    process_group = ProcessGroup(here.size, here.rank, here.node, here.on_node)
    with _ended_by_signals():  # nothing has begun
        _init_process_group(process_group, init_method=f"tcp://{here.address}", timeout=_MEETING)
    _current_group = process_group if process_group.is_rank_zero else None
    try:
        yield process_group
        if process_group.is_rank_zero:
            process_group.broadcast(None)
    finally:
        _current_group = None
        dist.destroy_process_group()


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let signals end the process while torch waits, which runs no handler of Python's."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {n: signal.signal(n, signal.SIG_DFL) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def spawn_group(plan: TrainingPlan) -> Iterator[ProcessGroup]:
    """Start the other ranks of a run on rank 0, and end them with the block."""
    size = plan.trainer.processes
    if size == 1 or _current_group is not None:
        yield _current_group or ProcessGroup()
        return
    process_group = ProcessGroup(size)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    share = Share(size, store.port, TrainConfig.of(plan.config), plan.outputs, allowed_packages.allowed())
    others: list[Other] = []
    try:
        for rank in range(1, size):
            others.append(start_other(rank, share))
        _await(store, others)
        _init_process_group(process_group, store=store, timeout=_CONNECTING)
        process_group.look_after = _WorkerWatch(process_group, others)
        try:
            yield process_group
        except OtherRankFailed:
            _await_an_end(others)  # of the one that says over what
            raise
    finally:
        _end(others)
        if dist.is_initialized():
            dist.destroy_process_group()


class Share(NamedTuple):
    """The work given to another process on this machine."""

    size: int
    port: int
    config: TrainConfig
    outputs: Path
    allowed: tuple[str, ...]


class Other(Protocol):
    """A worker process on this machine, with the methods of subprocess.Popen."""

    def poll(self) -> int | None:
        """Return its exit code, once it has ended."""

    def kill(self) -> None: ...

    def wait(self) -> int: ...


def start_other(rank: int, share: Share) -> Other:
    """Start a worker in an interpreter of its own, which needs nothing of the script that this process runs.

    It is in a session of its own, since a terminal's Ctrl-C is for rank 0, and ends when its stdin does.
    """
    other = subprocess.Popen(
        [sys.executable, "-u", "-c", _COMMAND, repr(sys.path)],
        stdin=subprocess.PIPE,
        stdout=2,  # of the first process it is for results alone
        start_new_session=True,
    )
    assert other.stdin is not None
    try:
        pickle.dump((rank, share), other.stdin)
        other.stdin.flush()
    except OSError:
        pass  # it has ended, which is noticed
    except BaseException:
        other.kill()
        raise
    return other


def _end(others: Sequence[Other]) -> None:
    for other in others:
        other.kill()
    for other in others:
        other.wait()


def _await(store: dist.TCPStore, others: Sequence[Other]) -> None:
    """Wait until all ranks are ready to connect. The wait is in Python, so that signals are handled."""
    names = [f"ready-{rank}" for rank in range(1, len(others) + 1)]
    until = time.monotonic() + _MEETING.total_seconds()
    while not store.check(names):
        if any(other.poll() is not None for other in others):
            raise OtherRankFailed("another process of this run ended before training; its own log says why")
        if time.monotonic() > until:
            raise OtherRankFailed(f"the other processes of this run were not ready within {_MEETING}")
        time.sleep(_PAUSE)
    store.set("all-ready", "")


def _await_an_end(others: Sequence[Other]) -> None:
    until = time.monotonic() + _SHUTDOWN_SECONDS
    while time.monotonic() < until and all(other.poll() is None for other in others):
        time.sleep(_PAUSE)


class _WorkerWatch:
    """Ends the other ranks if one has ended, or if they do not reach the step at which the run is to stop:
    the collective that this process waits for then fails."""

    def __init__(self, process_group: ProcessGroup, others: Sequence[Other]) -> None:
        self.process_group, self.others = process_group, others
        self._asked: float | None = None

    def __call__(self) -> None:
        if self.process_group.stop_requested() and self._asked is None:
            self._asked = time.monotonic()
        is_late = self._asked is not None and time.monotonic() - self._asked > _SHUTDOWN_SECONDS
        if is_late or any(other.poll() is not None for other in self.others):
            for other in self.others:
                other.kill()


def run_worker(process_group: ProcessGroup, plan: TrainingPlan) -> None:
    """Run the loop of a rank other than zero: train from the state it receives, until there is no more."""
    while (start := process_group.broadcast()) is not None:
        loop.train_as_worker(plan, start, process_group)


def worker_plan(config: TrainConfig, outputs: Path) -> TrainingPlan:
    """Return the plan of a rank other than zero: without recording callbacks, with the user's own."""
    from icl.training.build import build_parts

    own = {k: v for k, v in config.callbacks.items() if not v["_target_"].startswith("icl.callbacks.")}
    parts = vars(build_parts(config.with_values({("callbacks",): own})))
    parts["callbacks"] = [c for c in parts["callbacks"] if not isinstance(c, MetricCallback)]
    return TrainingPlan("", "", "", config.seeds, outputs=outputs, config=config.stored, **parts)


def _init_process_group(process_group: ProcessGroup, **how: Any) -> None:
    """Connect all processes within the timeout; from then on one may wait for another for long."""
    if torch.cuda.is_available():
        torch.cuda.set_device(process_group.on_node % torch.cuda.device_count())
    try:
        dist.init_process_group("gloo", world_size=process_group.size, rank=process_group.rank, **how)
    except (RuntimeError, ValueError) as error:
        raise OtherRankFailed(f"the processes of this run did not meet: {one_line(error)}") from error
    _set_pg_timeout(_COLLECTIVE_TIMEOUT, dist.group.WORLD)


def serve() -> None:
    """Run a rank that rank 0 has started. It ignores signals; rank 0 forwards them."""
    rank, share = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    code = 1
    try:
        take_part(rank, share)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:  # at once: rank 0 waits, and the interpreter's own end takes seconds
        sys.stderr.flush()
        os._exit(code)


def take_part(rank: int, share: Share) -> None:
    """Train in the run that rank 0 keeps, which also reports how it ended."""
    process_group = ProcessGroup(share.size, rank, 0, rank)
    with allowed_packages.frozen_allowlist(share.allowed), contextlib.suppress(Interrupted, OtherRankFailed):
        plan = worker_plan(share.config, share.outputs)
        store = dist.TCPStore("127.0.0.1", share.port, is_master=False, timeout=_MEETING)
        store.set(f"ready-{rank}", "")
        store.wait(["all-ready"], _MEETING)
        _init_process_group(process_group, store=store, timeout=_CONNECTING)
        run_worker(process_group, plan)


def _exit_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)
