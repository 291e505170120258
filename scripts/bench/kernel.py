"""A training step by torch and by the compiled kernel, in turns: risk, gradient, clip, Adam.

    python scripts/bench/kernel.py [--repeats 9] [--batch 20000] [--threads N] [--only NAME] [--device cuda]

Prompts are drawn before, and are no part of a step. With --device cuda the step of separate launches is
compared with one of CUDA graphs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from timing import compare, in_process

from icl.kernel import library
from icl.models import LSA, Full, LinearTransformer, MultiHead, Parametrization, SparseA, SparseAB, YqLSA
from icl.models.fused import Risk, fused_risk
from icl.random import generator
from icl.tasks import Law, LinearRegression
from icl.tasks.conditioned_regression import ConditionedRegression
from icl.tasks.dynamical_system import DynamicalSystem
from icl.training.estimators import make_estimator
from icl.training.optimizers import OptimizerSpec, ReplicaOptimizer
from icl.training.schedules import Constant

SEEDS = range(5)


def regression() -> Law:
    return LinearRegression(context=20, task_covariance="inverse").law(SEEDS)


# By name: the estimator of the risk, the law and the model.
CASES: dict[str, tuple[str, Callable[[], Law], Callable[[], Parametrization]]] = {
    "eq. (8), expected": ("expected", regression, lambda: SparseA(5, 3, 0.1)),
    "eq. (8), sampled": ("sampled", regression, lambda: SparseA(5, 3, 0.1)),
    "eq. (11), expected": ("expected", regression, lambda: SparseAB(5, 3, 0.1)),
    "full P and Q, sampled": ("sampled", regression, lambda: Full(5, 3, 0.1)),
    "xie, 4 heads, expected": ("expected", regression, lambda: MultiHead(5, 1, 4, 0.1)),
    "xie, LSA with y_q, expected": ("expected", regression, lambda: YqLSA(5, 1, 0.1)),
    "lds, window 5, sampled": (
        "sampled",
        lambda: DynamicalSystem(dim=5, length=30, window=5).law(SEEDS),
        lambda: Full(5, 2, 0.1),
    ),
    "giannou, LSA of 4 heads, sampled": (
        "sampled",
        lambda: ConditionedRegression(dim=5).law(SEEDS),
        lambda: LSA(5, 3, 4, None, mask=True, init_std=0.03),
    ),
}


class EnsembleStep:
    """One optimizer step of five seeds on one draw of prompts, computed `by` eager, kernel or graphs."""

    def __init__(self, case: str, by: str, dtype: torch.dtype, batch: int, device: str = "cpu") -> None:
        estimator, law, family = CASES[case]
        parametrization = family()
        parametrization.initialise(SEEDS, dtype)
        self.model = LinearTransformer(parametrization).to(device)
        made = make_estimator(estimator, self.model, law()).to(device, dtype)
        weights = dict(parametrization.named_parameters())
        spec = OptimizerSpec(torch.optim.Adam, {"lr": 1e-4}, Constant())
        self.optimizer = ReplicaOptimizer(spec, weights, [0.01] * len(SEEDS))
        streams = [generator(seed, "train", 0) for seed in SEEDS]
        draw = {k: v.to(device, dtype) for k, v in made.draw(streams, batch).items()}
        self.by, self.pieces = by, made.pieces(draw)
        self.risk: Risk = made.risk
        if by == "kernel":  # it takes the prompts in one piece
            self.pieces = [(1.0, draw)]
            self.risk = fused_risk(made.risk, self.model, draw)
        elif by == "CUDA graphs":
            self.risk = torch.compile(made.risk, mode="reduce-overhead")

    def take(self) -> None:
        self.optimizer.clear_gradients()
        if self.by == "CUDA graphs":
            torch.compiler.cudagraph_mark_step_begin()
        for share, piece in self.pieces:
            (self.risk(self.model, piece) * share).sum().backward()
        self.optimizer.attach_gradients()
        self.optimizer.clip()
        self.optimizer.optimizer.step()
        if torch.cuda.is_available():
            torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--batch", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.device == "cpu" and (reason := library.why_none()) is not None:
        raise SystemExit(f"the kernel cannot be built here: {reason}")
    fast = "kernel" if args.device == "cpu" else "CUDA graphs"
    for case in CASES:
        for dtype in (torch.float64, torch.float32):
            if args.only in case:
                works = {
                    by: in_process(EnsembleStep(case, by, dtype, args.batch, args.device).take)
                    for by in ("eager", fast)
                }
                name = f"{case}, {str(dtype).removeprefix('torch.')}, {args.threads} thread(s)"
                compare(name, works, args.repeats)


if __name__ == "__main__":
    main()
