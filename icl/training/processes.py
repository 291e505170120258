"""The processes of one run, as torchrun, srun or Lightning's own launcher state them in the environment.

Lightning starts them on one machine: it runs the command again, once for each further process. Rank 0 keeps
the record; the others only train.
"""

import os
from typing import NamedTuple

from icl.errors import InputError

_INTERACTIVE = 2**32 - 16  # numbers from here on are of Slurm's steps that are no srun's


class World(NamedTuple):
    """How many processes were started, which of them this is, and by what."""

    size: int = 1
    rank: int = 0
    by: str = ""  # torchrun | srun | lightning


def world() -> World:
    env = os.environ
    if "TORCHELASTIC_RUN_ID" in env:  # torchrun's, also where srun has started it
        return World(int(env["WORLD_SIZE"]), int(env["RANK"]), "torchrun")
    step = env.get("SLURM_STEP_ID", "")
    if step.isdigit() and int(step) < _INTERACTIVE and "SLURM_PROCID" in env:
        return World(int(env["SLURM_NTASKS"]), int(env["SLURM_PROCID"]), "srun")
    if "LOCAL_RANK" in env and "WORLD_SIZE" in env:
        return World(int(env["WORLD_SIZE"]), int(env["LOCAL_RANK"]), "lightning")
    return World()


def rank_of(processes: int, nodes: int) -> int:
    """Return the rank of this process among the `processes` of a run. Raises InputError if another number of
    them was started, or if those of other nodes are missing."""
    here = world()
    if processes > 1 and here.size not in (1, processes):
        raise InputError(
            f"trainer.devices, trainer.num_nodes: need {processes} processes, {here.size} were started: "
            "start as many (srun --ntasks-per-node=DEVICES, torchrun; under -m hydra.launcher.nodes and "
            "hydra.launcher.tasks_per_node of submitit_slurm)"
        )
    if processes == 1 < here.size and here.by == "torchrun":
        raise InputError(
            f"trainer.devices=1: torchrun has started {here.size} processes, which would each train the whole"
        )
    if nodes > 1 and here.size == 1:
        raise InputError(
            f"trainer.num_nodes={nodes}: the processes of the other nodes were not started; srun and "
            "torchrun do, and hydra/launcher=submitit_slurm under -m"
        )
    return here.rank if processes > 1 else 0
