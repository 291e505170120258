"""The processes that train one run together. Each draws its share of every batch, from streams of its own,
and what it finds is averaged: the gradient is, in expectation, that of the whole batch in one process.

Once in every step all processes meet in one sum, of gradients, loss and a flag that a signal to stop has
come, so that all stop at the same step. If one process fails, the sum of the others fails, too.
"""

from __future__ import annotations

import datetime
import hashlib
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.strategies import DDPStrategy
from torch import Tensor

_LOOK_UP = datetime.timedelta(seconds=1)  # while one waits for the others: so often signals are handled


class OtherRankFailed(RuntimeError):
    """Another process of this run failed or ended."""


class ProcessGroup:
    """`size` processes, of which this is number `rank`; one alone exchanges nothing.

    `look_after()` is called every second that this process waits for the others.
    """

    def __init__(self, size: int = 1, rank: int = 0, node: int = 0, on_node: int = 0) -> None:
        self.size, self.rank, self.node, self.on_node = size, rank, node, on_node
        self.stop_requested: Callable[[], bool] = lambda: False
        self.look_after: Callable[[], None] = lambda: None
        self._stops = False

    @property
    def is_rank_zero(self) -> bool:
        """Return whether this process is rank 0, which keeps the record."""
        return self.rank == 0

    def is_stopping(self) -> bool:
        """Return whether the run stops here, as agreed by all ranks."""
        return self._stops if self.size > 1 else self.stop_requested()

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its mean over the processes, which is the same to the bit in all of them.
        The sum is taken on the CPU, whatever the device: it is small, and there a lost process is noticed."""
        if self.size == 1:
            return
        stops = torch.tensor([float(self.stop_requested())], dtype=torch.float64)
        flat = torch.cat([*(t.detach().reshape(-1).cpu().double() for t in tensors), stops])
        self._finish(dist.all_reduce(flat, async_op=True))
        self._stops = bool(flat[-1] > 0)
        start = 0
        for tensor in tensors:
            tensor.copy_(flat[start : (start := start + tensor.numel())].view_as(tensor) / self.size)

    def broadcast(self, value: Any = None) -> Any:
        """Return the `value` of rank 0, for which the other ranks wait."""
        if self.size == 1:
            return value
        content = bytearray(pickle.dumps(value)) if self.is_rank_zero else bytearray()
        length = torch.tensor([len(content)])
        self._finish(dist.broadcast(length, 0, async_op=True))
        if not self.is_rank_zero:
            content = bytearray(int(length))
        self._finish(dist.broadcast(torch.frombuffer(content, dtype=torch.uint8), 0, async_op=True))
        return value if self.is_rank_zero else pickle.loads(content)

    def meet(self) -> None:
        """Wait until all ranks have called this."""
        if self.size > 1:
            self._finish(dist.barrier(async_op=True))

    def assert_identical_weights(self, tensors: Sequence[Tensor]) -> None:
        """Raise RuntimeError unless all ranks have the same weights, bit for bit."""
        if self.size == 1:
            return
        own = hashlib.sha256(b"".join(t.detach().cpu().numpy().tobytes() for t in tensors)).digest()
        number = int.from_bytes(own[:7])
        ends = torch.tensor([number, -number])
        self._finish(dist.all_reduce(ends, dist.ReduceOp.MAX, async_op=True))
        if ends[0] != -ends[1]:
            raise RuntimeError(f"the weights differ between the {self.size} processes")

    def _finish(self, work: Any) -> None:
        """Wait until all ranks have joined the collective; in Python once a second, so that signals are
        handled."""
        while True:
            try:
                work.wait(_LOOK_UP)
                return
            except RuntimeError as error:
                if work.is_completed():
                    reason = "another process of this run failed or was ended; its own log says why"
                    raise OtherRankFailed(reason) from error
            self.look_after()

    def strategy(self) -> DDPStrategy:
        """Lightning's strategy for a trainer that knows its rank."""
        return _AveragedByModule(self)


class _AveragedByModule(DDPStrategy):
    """Gradients are averaged by the module, once in a step of many backward passes; nothing is wrapped. Where
    Lightning waits for all processes, signals are handled as well."""

    def __init__(self, group: ProcessGroup) -> None:
        super().__init__(cluster_environment=_RankEnvironment(group))
        self.group = group

    def configure_ddp(self) -> None: ...

    def barrier(self, *_: Any, **__: Any) -> None:
        self.group.meet()

    def broadcast(self, obj: Any, src: int = 0) -> Any:
        assert src == 0
        return self.group.broadcast(obj)


class _RankEnvironment(LightningEnvironment):
    """Lightning's view of this rank. The process group is initialized already."""

    def __init__(self, group: ProcessGroup) -> None:
        super().__init__()
        self.group = group

    @property
    def creates_processes_externally(self) -> bool:
        return True

    def world_size(self) -> int:
        return self.group.size

    def global_rank(self) -> int:
        return self.group.rank

    def local_rank(self) -> int:
        return self.group.on_node

    def node_rank(self) -> int:
        return self.group.node

    def teardown(self) -> None: ...  # Lightning's would take torchrun's WORLD_SIZE out of the environment
