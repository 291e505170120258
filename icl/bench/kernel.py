"""Rows of `icl bench bench=train`: a whole training step by torch and by the compiled kernel in turn, by
torch.compile where it runs, and the share of the machine's multiply-add rate that the kernel reaches. On a
GPU: by torch, and with the risk as a CUDA graph.

Drawing is no part of a step; `draw_ms` is the CPU time of drawing the step's prompts. Ratios are of CPU time,
which counts all threads. A product of n x k by k x m is nmk multiply-adds, its two gradients twice as many;
the rate is what registers alone reach, in the same precision, with as many threads.
"""

from __future__ import annotations

import ctypes
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from icl.bench.timing import compare
from icl.kernel import library
from icl.models import LSA, Full, LinearTransformer, MultiHead, Parametrization, SparseA, SparseAB, YqLSA
from icl.models.fused import Risk, fused_risk, record_risk
from icl.random import generator
from icl.tasks import Law, LinearRegression
from icl.tasks.conditioned_regression import ConditionedRegression
from icl.tasks.dynamical_system import DynamicalSystem
from icl.training.estimators import make_estimator
from icl.training.optimizers import OptimizerSpec, ReplicaOptimizer
from icl.training.schedules import Constant

SEEDS = range(5)
BATCH = 20_000
ROUNDS = 1_000_000  # of multiply-adds in registers, some milliseconds
AIMS = {"avx2": 5.0, "avx512": 9.0}

# By name: the estimator of the risk, the law and the model.
CASES: dict[str, tuple[str, Callable[[], Law], Callable[[], Parametrization]]] = {
    "eq. (8), expected": ("expected", lambda: _regression(), lambda: SparseA(5, 3, 0.1)),
    "eq. (8), sampled": ("sampled", lambda: _regression(), lambda: SparseA(5, 3, 0.1)),
    "eq. (11), expected": ("expected", lambda: _regression(), lambda: SparseAB(5, 3, 0.1)),
    "full P and Q, sampled": ("sampled", lambda: _regression(), lambda: Full(5, 3, 0.1)),
    "xie, 4 heads, expected": ("expected", lambda: _regression(), lambda: MultiHead(5, 1, 4, 0.1)),
    "xie, LSA with y_q, expected": ("expected", lambda: _regression(), lambda: YqLSA(5, 1, 0.1)),
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


def rows(repeats: int) -> Iterator[dict[str, Any]]:
    """Compare eager and compiled steps: each case in double precision, the first in single and by threads."""
    yield from device_rows(repeats)
    if (reason := library.why_none()) is not None:
        yield {"name": "the compiled kernel", "target": "", "met": True, "skipped": reason}
        return
    threads = torch.get_num_threads()
    first = next(iter(CASES))
    todo = [(case, torch.float64, threads) for case in CASES] + [(first, torch.float32, threads)]
    if threads > 1:
        todo += [(first, torch.float64, 1), (first, torch.float32, 1)]
    for case, dtype, count in todo:
        torch.set_num_threads(count)
        try:
            yield _row(case, dtype, count, repeats, compiled=case == first)
        finally:
            torch.set_num_threads(threads)


def _row(case: str, dtype: torch.dtype, threads: int, repeats: int, compiled: bool) -> dict[str, Any]:
    precision = {torch.float64: "double", torch.float32: "single"}[dtype]
    eager, tile = FamilyStep(case, dtype), FamilyStep(case, dtype)
    tile.use_kernel()
    words = f"{case}, {precision}, {threads} thread{'s' * (threads > 1)}"
    has_aim = case == next(iter(CASES)) and dtype == torch.float64
    aim = AIMS.get(library.instruction_sets()[-1]) if has_aim else None
    found = asdict(
        compare(words, ("eager", eager.take), ("kernel", tile.take), repeats, at_least=aim, by="cpu")
    )
    work = 3 * tile.multiply_adds * BATCH * len(SEEDS)
    rate = _multiply_adds_a_second(dtype, threads, repeats)
    found |= {
        "multiply_adds": work,
        "share_of_rate": work / (found["second_ms"] / 1e3) / rate,
        "rate": rate,
        "draw_ms": statistics.median(_seconds(tile.redraw, repeats, time.process_time)) * 1e3,
    }
    if compiled and shutil.which("g++") and threads == torch.get_num_threads():
        found |= _by_torch_compile(case, dtype, repeats)
    return found


def _by_torch_compile(case: str, dtype: torch.dtype, repeats: int) -> dict[str, Any]:
    step = FamilyStep(case, dtype)
    started = time.perf_counter()
    try:
        step.risk = torch.compile(step.risk)
        step.take()
    except Exception as error:  # inductor raises what its compiler raises
        return {"compile_fails": type(error).__name__}
    seconds = time.perf_counter() - started
    return {"compile_ms": statistics.median(_seconds(step.take, repeats)) * 1e3, "compile_seconds": seconds}


def device_rows(repeats: int) -> Iterator[dict[str, Any]]:
    """Compare, on a GPU, a step that launches each product with one of CUDA graphs; beside them what it takes
    to copy the prompts there, from memory that is pinned and that is not."""
    if not torch.cuda.is_available():
        name = "a step on a GPU, eager / CUDA graphs"
        yield {"name": name, "target": "", "met": True, "skipped": "there is no CUDA device here"}
        return
    for case in CASES:
        for dtype in (torch.float64, torch.float32):
            eager, graphs = (FamilyStep(case, dtype, device="cuda") for _ in range(2))
            graphs.risk = torch.compile(graphs.risk, mode="reduce-overhead")
            graphs.has_graphs = True
            name = f"{case}, {dtype}, GPU".replace("torch.", "")
            found = asdict(compare(name, ("eager", eager.take), ("CUDA graphs", graphs.take), repeats))
            there = {k: tensor.cpu() for k, tensor in eager.draw.items()}
            pinned = {k: tensor.pin_memory() for k, tensor in there.items()}
            for key, tensors in (("copy_ms", there), ("pinned_copy_ms", pinned)):
                found[key] = statistics.median(_seconds(partial(_copy, tensors), repeats)) * 1e3
            yield found


def _copy(tensors: dict[str, torch.Tensor]) -> None:
    for tensor in tensors.values():
        tensor.to("cuda", non_blocking=True)
    torch.cuda.synchronize()


class FamilyStep:
    """One optimizer step of an ensemble: risk, gradient, clip, Adam."""

    has_graphs = False

    def __init__(self, case: str, dtype: torch.dtype, batch: int = BATCH, device: str = "cpu") -> None:
        estimator, law, family = CASES[case]
        self.law, parametrization = law(), family()
        parametrization.initialise(SEEDS, dtype)
        self.model = LinearTransformer(parametrization).to(device)
        self.estimator = make_estimator(estimator, self.model, self.law).to(device, dtype)
        weights = dict(parametrization.named_parameters())
        spec = OptimizerSpec(torch.optim.Adam, {"lr": 1e-4}, Constant())
        self.optimizer = ReplicaOptimizer(spec, weights, [0.01] * len(SEEDS))
        self.batch = batch
        self.draw = {k: v.to(device, dtype) for k, v in self.redraw().items()}
        self.risk: Risk = self.estimator.risk
        self.pieces = self.estimator.pieces(self.draw)

    def redraw(self) -> dict[str, torch.Tensor]:
        return self.estimator.draw([generator(seed, "train", 0) for seed in SEEDS], self.batch)

    def use_kernel(self) -> None:
        """Compute the risk by the compiled kernel, which takes the prompts in one piece."""
        recording = record_risk(self.estimator.risk, self.model, self.draw).recording
        self.multiply_adds = recording.program.multiply_adds()
        self.risk, self.pieces = fused_risk(self.estimator.risk, self.model, self.draw), [(1.0, self.draw)]

    def take(self) -> None:
        self.optimizer.clear_gradients()
        if self.has_graphs:
            torch.compiler.cudagraph_mark_step_begin()
        for share, piece in self.pieces:
            (self.risk(self.model, piece) * share).sum().backward()
        self.optimizer.attach_gradients()
        self.optimizer.clip()
        self.optimizer.engine.step()
        if next(iter(self.draw.values())).is_cuda:
            torch.cuda.synchronize()


def _regression() -> Law:
    return LinearRegression(context=20, task_covariance="inverse").law(SEEDS)


def _multiply_adds_a_second(dtype: torch.dtype, threads: int, repeats: int) -> float:
    """Return the most that the threads reach together; other programs only lower it."""
    run = library.library().icl_kernel_multiply_adds
    run.restype, run.argtypes = ctypes.c_int64, [ctypes.c_int, ctypes.c_int, ctypes.c_int64]
    asked = len(library.instruction_sets()) - 1, int(dtype == torch.float32), ROUNDS
    with ThreadPoolExecutor(threads) as pool:

        def together() -> int:
            return sum(pool.map(lambda _: run(*asked), range(threads)))

        return together() / min(_seconds(together, 3 * repeats))


def _seconds(
    work: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    work()
    taken = []
    for _ in range(repeats):
        started = clock()
        work()
        taken.append(clock() - started)
    return taken
