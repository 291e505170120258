"""Tests of replicas side by side against each one alone, stepped by plain torch.optim."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from icl.errors import InputError
from icl.training.optimizers import OptimizerSpec, ReplicaOptimizer
from icl.training.schedules import Constant, StepHalving, WarmupCosine

R, L, D = 3, 2, 2


def spec(cls: type[torch.optim.Optimizer], **options: Any) -> OptimizerSpec:
    return OptimizerSpec(cls, options, Constant())


def start(seed: int = 0) -> dict[str, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(R, n, D, D, dtype=torch.float64, generator=rng)
        for name, n in (("A", L), ("B", L - 1))
    }


def loss_of(A_LDD: Tensor, B_LDD: Tensor, step: int) -> Tensor:
    """Return a loss that is not quadratic, and another function at each step."""
    return (A_LDD.square().sum() - 1 - 0.1 * step) ** 2 + (A_LDD[0] @ B_LDD[0]).cos().sum()


def by_replicas(spec: OptimizerSpec, clip_R: list[float] | None, steps: int) -> dict[str, Tensor]:
    stacks = {name: nn.Parameter(tensor) for name, tensor in start().items()}
    optimizer = ReplicaOptimizer(spec, stacks, clip_R)
    for step in range(steps):
        for stack in stacks.values():
            stack.grad = None
        optimizer.set_rates(step)
        sum(loss_of(stacks["A"][r], stacks["B"][r], step) for r in range(R)).backward()  # type: ignore[union-attr]
        optimizer.attach_gradients()
        optimizer.clip()
        optimizer.optimizer.step()
    return {name: stack.detach() for name, stack in stacks.items()}


def one_alone(spec: OptimizerSpec, clip: float | None, steps: int, r: int) -> dict[str, Tensor]:
    weights = {name: nn.Parameter(tensor[r].clone()) for name, tensor in start().items()}
    options = spec.per_replica(R)[r]
    optimizer = spec.cls(list(weights.values()), **options)
    for step in range(steps):
        optimizer.zero_grad()
        optimizer.param_groups[0]["lr"] = spec.schedule.rate(options["lr"], step)
        loss_of(weights["A"], weights["B"], step).backward()
        for weight in weights.values():
            for layer in range(len(weight)):
                norm = weight.grad[layer].norm()
                if clip is not None and norm > clip:
                    weight.grad[layer] *= clip / norm
        optimizer.step()
    return {name: weight.detach() for name, weight in weights.items()}


BETAS = [[0.9, 0.99], [0.5, 0.9], [0.99, 0.9]]
SPECS = {
    "adam": spec(torch.optim.Adam, lr=0.05, betas=[0.9, 0.99]),
    "adam, per replica": spec(torch.optim.Adam, lr=[0.05, 0.01, 0.1], betas=BETAS, eps=[1e-8, 1e-4, 1e-8]),
    "adam, two alike": spec(torch.optim.Adam, lr=[0.05, 0.01, 0.05], betas=[BETAS[0], BETAS[1], BETAS[0]]),
    "adamw": spec(torch.optim.AdamW, lr=[0.05, 0.02, 0.1], weight_decay=[0.0, 0.5, 0.1]),
    "momentum": spec(torch.optim.SGD, lr=[0.01, 0.02, 0.005], momentum=[0.0, 0.9, 0.5]),
    "foreach": spec(torch.optim.Adam, lr=0.05, foreach=True),
    "halving": OptimizerSpec(torch.optim.Adam, {"lr": [0.1, 0.2, 0.3]}, StepHalving(3)),
    "cosine": OptimizerSpec(torch.optim.SGD, {"lr": [0.01, 0.02, 0.03]}, WarmupCosine(2, 5, 0.001)),
}


@pytest.mark.parametrize("clip_R", [None, [0.1, 0.1, 0.1], [0.01, 100.0, 0.5]], ids=["none", "one", "each"])
@pytest.mark.parametrize("name", SPECS)
def test_an_ensemble_is_its_replicas_trained_apart(name: str, clip_R: list[float] | None) -> None:
    together = by_replicas(SPECS[name], clip_R, 9)
    for r in range(R):
        alone = one_alone(SPECS[name], None if clip_R is None else clip_R[r], 9, r)
        for matrix in ("A", "B"):
            assert torch.allclose(together[matrix][r], alone[matrix], rtol=1e-10, atol=1e-12)
            assert not torch.allclose(together[matrix][r], start()[matrix][r], rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Adam", {"lr": -1.0}, r"optimizer\.lr=-1\.0: must be a finite number above 0"),
        ("Adam", {"lr": 0}, r"optimizer\.lr=0"),
        ("Adam", {"lr": "big"}, r"optimizer\.lr=big"),
        ("Adam", {"lr": [0.1, 0.1]}, r"optimizer\.lr=\[0\.1, 0\.1\]: has 2 entries for 3 seeds"),
        ("Adam", {"betas": [0.9]}, r"optimizer\.betas=\[0\.9\]: has 1 numbers, must have 2"),
        ("Adam", {"betas": []}, r"optimizer\.betas=\[\]: has 0 numbers"),
        ("Adam", {"betas": [0.9, 1.5]}, r"optimizer: Invalid beta parameter"),
        ("Adam", {"betas": [[0.9, 0.9]]}, r"optimizer\.betas=.*: has 1 entries for 3 seeds"),
        ("Adam", {"betas": [[0.9, 0.9], 0.1, 0.2]}, r"optimizer\.betas=0\.1: must be a list"),
        ("Adam", {"betas": {"a": 1}}, r"optimizer\.betas=\{'a': 1\}: must be a number"),
        ("Adam", {"eps": float("inf")}, "optimizer: with these options Adam does not change the weights"),
        ("Adam", {"weight_decay": [0, 0, -1]}, "optimizer: Invalid weight_decay"),
        ("Adam", {"momentum": 0.9}, r"optimizer\.momentum: Adam has no such option"),
        ("LBFGS", {"max_iter": -1}, "optimizer: with these options LBFGS does not change the weights"),
        ("LBFGS", {"history_size": 0}, "optimizer: "),
        ("LBFGS", {"line_search_fn": "foo"}, "optimizer: only 'strong_wolfe' is"),
        ("SGD", {"momentum": "yes"}, "optimizer: "),
        ("SGD", {"nesterov": True}, "optimizer: Nesterov momentum requires"),
    ],
)
def test_impossible_options(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        spec(getattr(torch.optim, name), **({"lr": 0.1} | options)).per_replica(R)


def test_a_missing_option() -> None:
    with pytest.raises(InputError, match=r"optimizer\.lr: missing"):
        spec(torch.optim.Adam)
