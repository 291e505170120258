"""torch.optim over replicas: one parameter group per replica, so that every number may differ between them.

The trained tensors are stacks with a leading replica axis. Each replica's slice is handed to the optimizer as
a parameter of its own that shares the stack's memory (and its gradient the stack's gradient), so one backward
pass over the stack serves all groups and the optimizer's state is per replica by construction.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from icl.errors import InputError, one_line, real, reals
from icl.training.schedules import Schedule

PAIRS = ("betas", "etas", "step_sizes")  # options of torch.optim that are pairs of numbers


@dataclass(frozen=True)
class OptimizerSpec:
    """A torch.optim class, its options (a number, or one per replica) and the schedule of its rate."""

    cls: type[torch.optim.Optimizer]
    options: Mapping[str, Any]
    schedule: Schedule

    def __post_init__(self) -> None:
        known = inspect.signature(self.cls).parameters
        for key in self.options:
            if key not in known:
                raise InputError(f"optimizer.{key}: {self.cls.__name__} has no such option")
        if "lr" not in self.options:
            raise InputError("optimizer.lr: missing")

    @property
    def needs_per_replica_step(self) -> bool:
        return issubclass(self.cls, torch.optim.LBFGS)

    def per_replica(self, replicas: int) -> list[dict[str, Any]]:
        """Return the options of each replica; the constructor's own complaints become input errors."""
        options = [
            {k: _option_of_replica(k, v, r, replicas) for k, v in self.options.items()}
            for r in range(replicas)
        ]
        tried: list[dict[str, Any]] = []
        for chosen in options:
            real("optimizer.lr", chosen["lr"], 0, open_low=True)
            self.schedule.rate(chosen["lr"], 0)
            if chosen not in tried[-1:]:
                self._validate_options(chosen)
                tried.append(chosen)
        return options

    def _validate_options(self, chosen: Mapping[str, Any]) -> None:
        """Try the options in three steps on one number: torch checks some of them only then."""
        number = torch.zeros(1, dtype=torch.float64, requires_grad=True)

        def loss() -> torch.Tensor:
            optimizer.zero_grad()
            distance = (number - 2.3).cosh().sum()  # at 1 L-BFGS arrives with its first step
            distance.backward()  # type: ignore[no-untyped-call]
            return distance

        try:
            optimizer = self.cls([number], **chosen)
            for _ in range(3):
                optimizer.step(loss)  # type: ignore[arg-type]
        except (ValueError, TypeError, RuntimeError, LookupError) as error:
            raise InputError(f"optimizer: {one_line(error)}") from None
        if float(number.detach()) == 0:
            raise InputError(f"optimizer: with these options {self.cls.__name__} does not change the weights")
        for key, value in chosen.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                real(f"optimizer.{key}", value, 0)  # torch compares few of them with what they can be


def _option_of_replica(key: str, value: Any, replica: int, replicas: int) -> Any:
    """Option of a replica: a scalar is for all; a list has one entry each (for betas, a list of pairs)."""
    if isinstance(value, Mapping):
        raise InputError(f"optimizer.{key}={dict(value)}: must be a number, or a list")
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    if key in PAIRS:
        nested = [isinstance(entry, Sequence) and not isinstance(entry, str) for entry in value]
        if not any(nested):
            return _pair(key, value)
        value = [_pair(key, entry) for entry in value]
    if len(value) != replicas:
        raise InputError(f"optimizer.{key}={list(value)}: has {len(value)} entries for {replicas} seeds")
    return value[replica]


def _pair(key: str, value: Any) -> tuple[float, ...]:
    return tuple(reals(f"optimizer.{key}", value, 2))


class PerReplicaOptimizer(torch.optim.Optimizer):
    """An optimizer for each replica, as one. Its closure gives the loss of replica `turn`."""

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        self.optimizers, self.current_replica = list(optimizers), 0
        super().__init__([group for optimizer in optimizers for group in optimizer.param_groups], {})
        self._share_groups()

    def step(self, closure: Callable[[], float]) -> None:  # type: ignore[override]
        for r, optimizer in enumerate(self.optimizers):
            self.current_replica = r
            optimizer.step(closure)

    def state_dict(self) -> dict[str, Any]:
        return {"optimizers": [optimizer.state_dict() for optimizer in self.optimizers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        for optimizer, saved in zip(self.optimizers, state_dict["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self._share_groups()

    def _share_groups(self) -> None:
        """Share parameter groups with the optimizers: what is set in a group is set for its optimizer."""
        self.param_groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]


class ReplicaOptimizer:
    """One torch.optim object, `optimizer`, and the views of the stacks that it steps."""

    def __init__(
        self, spec: OptimizerSpec, stacks: Mapping[str, nn.Parameter], clip_R: Sequence[float] | None
    ) -> None:
        self.spec = spec
        self.stacks = dict(stacks)
        replicas = next(iter(stacks.values())).shape[0]
        self.options = spec.per_replica(replicas)
        self.base_rates = [float(options["lr"]) for options in self.options]
        first = next(iter(stacks.values()))
        self.clip_R = None if clip_R is None else torch.tensor(clip_R, device=first.device, dtype=first.dtype)
        self.views = [
            [nn.Parameter(stack.data[r : r + 1]) for stack in stacks.values()] for r in range(replicas)
        ]
        groups = [
            {"params": views, **options} for views, options in zip(self.views, self.options, strict=True)
        ]
        if spec.needs_per_replica_step:
            apart = [spec.cls(g["params"], **o) for g, o in zip(groups, self.options, strict=True)]
            self.optimizer: torch.optim.Optimizer = PerReplicaOptimizer(apart)
        else:
            self.optimizer = spec.cls(groups, **self._fused(first.device), **self.options[0])
            self.optimizer.register_step_pre_hook(self._join_equal_groups)
            self.optimizer.register_step_post_hook(self._restore_groups)

    def _fused(self, device: torch.device) -> dict[str, Any]:
        """Use one fused kernel for all groups, where it exists and the user chose no other."""
        known = "fused" in inspect.signature(self.spec.cls).parameters and device.type in ("cpu", "cuda")
        chosen = {"fused", "foreach", "differentiable"} & set(self.options[0])
        return {"fused": True} if known and not chosen else {}

    def _join_equal_groups(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        """Let a step see replicas with the same numbers as one group: each group is a launch of its own."""
        joined: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._groups = optimizer.param_groups
        for group in self._groups:
            numbers = tuple(value for key, value in group.items() if key != "params")
            found = joined.setdefault(numbers, {**group, "params": []})
            found["params"] += group["params"]
        optimizer.param_groups = list(joined.values())

    def _restore_groups(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        optimizer.param_groups = self._groups

    def set_rates(self, step: int) -> None:
        for group, base in zip(self.optimizer.param_groups, self.base_rates, strict=True):
            group["lr"] = self.spec.schedule.rate(base, step)

    def rates(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def clear_gradients(self) -> None:
        for stack in self.stacks.values():
            stack.grad = None

    def attach_gradients(self) -> None:
        """Show every view its slice of the stack's gradient, which shares its memory."""
        for index, stack in enumerate(self.stacks.values()):
            assert stack.grad is not None
            for views, own in zip(self.views, stack.grad.split(1), strict=True):
                views[index].grad = own

    def clip(self) -> None:
        """Clip each matrix of each replica in place, so that the views see it."""
        if self.clip_R is None:
            return
        for stack in self.stacks.values():
            assert stack.grad is not None
            norm = torch.linalg.matrix_norm(stack.grad)
            limit = self.clip_R.view(-1, *[1] * (norm.ndim - 1))
            stack.grad.mul_((limit / norm).clamp(max=1.0)[..., None, None])
