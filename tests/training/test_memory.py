"""Tests of what is said and done where a process may have less memory than the machine has."""

import resource

from icl.jobs.execution import memory
from icl.training.run import _naming_what_takes_memory


def test_a_limit_of_the_process_counts(monkeypatch):
    free = memory.available_bytes()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (10**6, 10**6))
    assert memory.available_bytes() == 0 < free
    monkeypatch.setattr(resource, "getrlimit", lambda which: (2**60, 2**60))
    assert memory.available_bytes() > 0


def test_the_error_names_the_settings_that_take_less():
    torchs = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 10 bytes")
    both = str(_naming_what_takes_memory(torchs, several=True))
    assert "hydra.launcher.max_replicas or train.batch" in both and "10 bytes" in both
    alone = str(_naming_what_takes_memory(MemoryError(), several=False))
    assert alone == "lower train.batch or train.steps_per_batch: out of memory"
    other = ValueError("no")
    assert _naming_what_takes_memory(other, several=True) is other
