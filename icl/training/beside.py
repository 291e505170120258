"""Who the processes of a company are, and how they meet.

srun and torchrun start all of them. On one machine nobody need: the first starts the others once there is
something to train, and they are told what; the command is not run again.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from pytorch_lightning.plugins.environments import SLURMEnvironment

from icl.config import packages
from icl.config.places import TORCHRUN
from icl.errors import InputError
from icl.training import job
from icl.training.company import Company, OthersFailed
from icl.training.job import TrainingPlan

_PATIENCE = datetime.timedelta(days=1)  # of those who wait while the first waits, measures or judges
_ENDING = 30.0  # seconds
_INTERACTIVE = 2**32 - 16  # numbers from here on are of Slurm's steps that are no srun's
_joined: Company | None = None  # of those who were started by somebody else; a process is in one at most


class Place(NamedTuple):
    """Where a process stands among those that somebody started."""

    size: int
    rank: int
    node: int
    on_node: int
    address: str


def place() -> Place | None:
    """Of this process; None where it was started by itself."""
    env = os.environ
    if TORCHRUN in env:  # also where srun has started it
        names = ("WORLD_SIZE", "RANK", "GROUP_RANK", "LOCAL_RANK")
        size, rank, node, on_node = (int(env[name]) for name in names)
        return Place(size, rank, node, on_node, f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}")
    step = env.get("SLURM_STEP_ID", "")
    if step.isdigit() and int(step) < _INTERACTIVE and "SLURM_PROCID" in env:
        names = ("SLURM_NTASKS", "SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID")
        first = SLURMEnvironment.resolve_root_node_address(env.get("SLURM_NODELIST", "127.0.0.1"))
        port = 15000 + int(env["SLURM_JOB_ID"]) % 10000  # that other jobs on the node do not take
        address = f"{env.get('MASTER_ADDR', first)}:{env.get('MASTER_PORT', port)}"
        size, rank, node, on_node = (int(env.get(name, 0)) for name in names)
        return Place(size, rank, node, on_node, address)
    return None


def was_started(processes: int, nodes: int) -> bool:
    """Whether this process is one of `processes` that somebody started. Raises InputError where it is one of
    some other number, or the processes of other nodes are missing."""
    here = place()
    size = 1 if here is None else here.size
    if processes > 1 and size not in (1, processes):
        raise InputError(
            f"trainer.devices, trainer.num_nodes: make {processes} processes, and here are {size}; "
            "start as many (srun --ntasks-per-node=DEVICES, torchrun), or let cluster=slurm do it"
        )
    if processes == 1 < size and TORCHRUN in os.environ:
        raise InputError(
            f"trainer.devices=1: torchrun has started {size} processes, which would each train the whole; "
            "trainer.devices says how many of them a node has, trainer.num_nodes how many nodes there are"
        )
    if nodes > 1 and size == 1:
        raise InputError(
            f"trainer.num_nodes={nodes}: nobody has started the processes of the other nodes; cluster=slurm, "
            "srun and torchrun do"
        )
    return processes > 1 and size > 1


@contextlib.contextmanager
def joined() -> Iterator[Company]:
    """For those who were started: they meet before the first of them knows what there is to do."""
    global _joined
    here = place()
    assert here is not None
    company = Company(here.size, here.rank, here.node, here.on_node)
    _meet(company, here.address)
    _joined = company if company.leads else None
    try:
        yield company
        if company.leads:
            company.tell(None)
    finally:
        _joined = None
        dist.destroy_process_group()


@contextlib.contextmanager
def company_of(plan: TrainingPlan) -> Iterator[Company]:
    """For the first: the others stand by."""
    size = plan.trainer.processes
    if size == 1 or _joined is not None:
        yield _joined or Company()
        return
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    context = get_context("spawn")
    given = (dict(plan.config), plan.seeds, plan.outputs, size, address, packages.allowed())
    others = [context.Process(target=_serve, args=(rank, *given), daemon=True) for rank in range(1, size)]
    for other in others:
        other.start()
    company = Company(size)
    try:
        _meet(company, address)
        try:
            yield company
            company.tell(None)
        except OthersFailed:
            wait([other.sentinel for other in others], _ENDING)  # for the one that says over what
            raise
        finally:
            dist.destroy_process_group()
        for other in others:
            other.join(_ENDING)
    finally:
        for other in others:
            other.kill()
            other.join()


def follow(company: Company, config: Mapping[str, Any], seeds: Sequence[int], outputs: Path) -> None:
    """What all but the first do: they train what they are told of, until there is no more."""
    while (start := company.hear()) is not None:
        job.train_beside(_plan_of(config, seeds, outputs), start, company)


def _plan_of(config: Mapping[str, Any], seeds: Sequence[int], outputs: Path) -> TrainingPlan:
    """Without what watches and records, which the first does for all; a user's callbacks are everywhere."""
    from icl.training.listed import parts_of

    nodes = {k: v for k, v in config["callbacks"].items() if v is not None}
    own = {k: v for k, v in nodes.items() if not v["_target_"].startswith("icl.callbacks.")}
    parts = parts_of({**config, "callbacks": own}, seeds)
    parts["callbacks"] = [c for c in parts["callbacks"] if not isinstance(c, job.Measure)]
    return TrainingPlan("", "", "", tuple(seeds), outputs=outputs, config=config, **parts)


def _meet(company: Company, address: str) -> None:
    given = {"init_method": f"tcp://{address}", "world_size": company.size, "rank": company.rank}
    if torch.cuda.is_available():
        torch.cuda.set_device(company.on_node % torch.cuda.device_count())
    dist.init_process_group(timeout=_PATIENCE, **given)  # type: ignore[arg-type]


def _serve(
    rank: int,
    config: dict[str, Any],
    seeds: tuple[int, ...],
    outputs: Path,
    size: int,
    address: str,
    allowed: tuple[str, ...],
) -> None:
    """The life of another process on this machine. Signals are for the first, which tells of them."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_starter, daemon=True).start()
    company = Company(size, rank, 0, rank)
    with packages.fixed(allowed):
        _meet(company, address)
        follow(company, config, seeds, outputs)
    dist.destroy_process_group()


def _end_with_starter() -> None:
    starter = parent_process()
    assert starter is not None
    starter.join()
    os._exit(1)
