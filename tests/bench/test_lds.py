from __future__ import annotations

from icl.bench import lds


def test_a_step_is_timed_on_both_risks(monkeypatch):
    monkeypatch.setattr(lds, "BATCH", 8)
    row = lds.step(1)
    assert (
        row["first_ms"] > 0
        and row["second_ms"] > 0
        and row["first_cpu_ms"] > 0
        and row["target"] == "batch 8 under 30 ms"
    )
