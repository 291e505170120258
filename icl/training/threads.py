"""Torch's settings of the process for a while. The thread count: over tiny matrices, threads that wait for
one another cost ten times as much on a busy machine. And the precision of float32 products."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Set the number of threads to `count`, at most that of the machine, and restore it afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def matmul_precision(name: str) -> Iterator[None]:
    """Set torch's precision of float32 products, and put it back."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
