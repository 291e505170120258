"""The thread count of torch for a while: over tiny matrices, threads that wait for one another cost ten times
as much on a busy machine."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Set the number of threads to `count`, unless it is None, and restore it afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
