from icl.bench import lds
from icl.kernel import library


def test_a_step_is_timed_on_both_risks(monkeypatch):
    monkeypatch.setattr(lds, "BATCH", 8)
    row = lds.step(1)
    assert min(row[name] for name in ("first_ms", "second_ms", "first_cpu_ms")) > 0
    known = library.why_none() is None
    assert row["target"] == f"batch 8, {'kernel, under 12' if known else 'torch, under 30'} ms"
