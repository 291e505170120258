"""Tests of submitit's jobs on this machine: what they leave, and that they are queued again."""

from typing import Any

import pytest

from icl.errors import InputError
from icl.jobs.execution.cluster import cluster_of, parse_cluster

pytest.importorskip("submitit", reason="the slurm extra is not installed")


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"engine": "local", "minutes": 0}, "cluster.minutes=0: must be"),
        ({"engine": "local", "minutes": 1, "cpu": 2}, "cluster.cpu: "),
        ({"engine": "slurm", "minutes": 1, "grace": 60}, "cluster.grace=60: must be less"),
        ({"engine": "cloud", "minutes": 1}, "cluster.engine=cloud: must be one of"),
        ({"engine": "slurm", "minutes": 1, "gpus": 0}, "cluster.gpus=0: must be"),
        ("slrm", "cluster=slrm: must be one of"),
    ],
)
def test_wrong_settings(node: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        cluster_of(node)


def test_no_slurm_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert cluster_of({"engine": "slurm", "minutes": 60}) is not None  # as a job on a node asks
    with pytest.raises(InputError, match="no sbatch and srun here"):
        parse_cluster({"engine": "slurm", "minutes": 60})
