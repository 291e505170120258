"""Tests that `icl bench bench=train` compares the same step, and counts its multiply-adds."""

import pytest
import torch

from icl.bench import kernel
from icl.kernel import library
from icl.kernel.recording import record
from icl.models.batched import product, squared_norm

needs_kernel = pytest.mark.skipif(library.why_none() is not None, reason=f"no kernel: {library.why_none()}")


@needs_kernel
@pytest.mark.parametrize("case", kernel.CASES)
def test_both_take_the_same_step(case):
    eager, tile = (kernel.FamilyStep(case, torch.float64, batch=40) for _ in range(2))
    tile.use_kernel()
    assert tile.multiply_adds > 0
    for step in (eager, tile):
        for _ in range(3):
            step.take()
    for ours, other in zip(tile.model.parameters(), eager.model.parameters(), strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-9, atol=1e-12)


def test_multiply_adds_are_those_of_products_that_count():
    def function(weights, prompts):
        unused = product(prompts["X"], prompts["Y"])
        assert unused is not None
        return squared_norm(product(prompts["X"], weights["W"][..., None])).mean(-1)

    tensors = ({"W": torch.ones(1, 3, 2)}, {"X": torch.ones(1, 4, 3, 7), "Y": torch.ones(1, 3, 5, 7)})
    assert record(function, *tensors).program.multiply_adds() == 4 * 3 * 2


def test_without_a_gpu_its_rows_say_why(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (row,) = kernel.device_rows(1)
    assert row["skipped"] == "there is no CUDA device here" and row["met"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_graphs_take_the_same_step(monkeypatch):
    monkeypatch.setattr(kernel, "BATCH", 200)
    case = next(iter(kernel.CASES))
    eager, graphs = (kernel.FamilyStep(case, torch.float64, batch=200, device="cuda") for _ in range(2))
    graphs.risk, graphs.has_graphs = torch.compile(graphs.risk, mode="reduce-overhead"), True
    for step in (eager, graphs):
        for _ in range(5):
            step.take()
    for ours, other in zip(graphs.model.parameters(), eager.model.parameters(), strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-9, atol=1e-12)
    rows = list(kernel.device_rows(2))
    assert len(rows) == 2 * len(kernel.CASES) and all(row["pinned_copy_ms"] > 0 for row in rows)
