"""The processes that train one run together. Each draws its share of every batch, from streams of its own,
and what it finds is averaged: the gradient is, in expectation, that of the whole batch in one process.

Once in every step all processes meet in one sum. It carries gradients and loss, and two flags: whether
somebody was told to stop, so that all stop at the same step, and whether somebody failed, so that none waits
for ever.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from pytorch_lightning.plugins.environments import ClusterEnvironment
from pytorch_lightning.strategies import DDPStrategy
from torch import Tensor

from icl.errors import Interrupted


class OthersFailed(RuntimeError):
    """Another process of this run failed or ended."""


class Company:
    """`size` processes, of which this is number `rank`; one alone has nothing to tell anybody."""

    def __init__(self, size: int = 1, rank: int = 0, node: int = 0, on_node: int = 0) -> None:
        self.size, self.rank, self.node, self.on_node = size, rank, node, on_node
        self.wants_to_stop: Callable[[], bool] = lambda: False
        self._stops = False
        self._meetings = 0  # that are still to come
        self._length = 0

    @property
    def leads(self) -> bool:
        """Whether this process keeps the record."""
        return self.rank == 0

    def is_stopping(self) -> bool:
        """Whether the run ends here: as all have agreed, in a company."""
        return self._stops if self.size > 1 else self.wants_to_stop()

    @contextlib.contextmanager
    def meeting(self, count: int, length: int) -> Iterator[None]:
        """For so many sums of so many numbers. Where one leaves early the others hear of it in the next."""
        self._meetings, self._length, self._stops = count, length, False
        try:
            yield
        except BaseException as error:
            if (
                self.size > 1
                and self._meetings > 0
                and not self._stops
                and not isinstance(error, OthersFailed)
            ):
                with contextlib.suppress(OthersFailed):  # they may be gone
                    self._sum([], broken=not isinstance(error, Interrupted))
            raise

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Each becomes its mean over the processes, to the bit the same in all of them."""
        if self.size == 1:
            return
        flat = self._sum(tensors, broken=False)
        start = 0
        for tensor in tensors:
            tensor.copy_(flat[start : (start := start + tensor.numel())].view_as(tensor) / self.size)

    def _sum(self, tensors: Sequence[Tensor], *, broken: bool) -> Tensor:
        device = tensors[0].device if tensors and tensors[0].is_cuda else torch.device("cpu")
        flat = torch.zeros(self._length + 2, dtype=torch.float64, device=device)
        start = 0
        for tensor in tensors:
            flat[start : (start := start + tensor.numel())] = tensor.detach().reshape(-1)
        flat[-2:] = torch.tensor([float(self.wants_to_stop()), float(broken)])
        try:
            dist.all_reduce(flat)
        except RuntimeError as error:
            raise OthersFailed("another process of this run has ended; its own log says over what") from error
        self._meetings -= 1
        stops, broke = flat[-2:].tolist()
        self._stops = stops > 0
        if broke > 0 and not broken:
            raise OthersFailed("another process of this run failed; its own log says over what")
        return flat

    def tell(self, what: Any) -> None:
        """To all the others, of whom each hears it."""
        if self.size > 1:
            dist.broadcast_object_list([what], src=0)

    def hear(self) -> Any:
        heard = [None]
        dist.broadcast_object_list(heard, src=0)
        return heard[0]

    def insist_same(self, tensors: Sequence[Tensor]) -> None:
        """That all have come to the same weights, bit for bit."""
        if self.size == 1:
            return
        own = hashlib.sha256(b"".join(t.detach().cpu().numpy().tobytes() for t in tensors)).hexdigest()
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, own)
        if len(set(found)) > 1:
            raise RuntimeError(f"the weights of {self.size} processes have come to differ")

    def strategy(self) -> DDPStrategy:
        """Lightning's, for a trainer that knows its rank."""
        return _Together(cluster_environment=_Placed(self))


class _Together(DDPStrategy):
    """Gradients are averaged by the module, once in a step of many backward passes; nothing is wrapped."""

    def configure_ddp(self) -> None: ...


class _Placed(ClusterEnvironment):
    """Where this process stands. The processes have found one another already."""

    def __init__(self, company: Company) -> None:
        super().__init__()
        self.company = company

    @property
    def creates_processes_externally(self) -> bool:
        return True

    @property
    def main_address(self) -> str:
        return "127.0.0.1"

    @property
    def main_port(self) -> int:
        return 0

    @staticmethod
    def detect() -> bool:
        return False

    def world_size(self) -> int:
        return self.company.size

    def set_world_size(self, size: int) -> None: ...

    def global_rank(self) -> int:
        return self.company.rank

    def set_global_rank(self, rank: int) -> None: ...

    def local_rank(self) -> int:
        return self.company.on_node

    def node_rank(self) -> int:
        return self.company.node
