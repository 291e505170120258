from icl.bench import lds


def test_a_step_is_timed_on_both_risks(monkeypatch):
    monkeypatch.setattr(lds, "BATCH", 8)
    row = lds.step(1)
    assert min(row[name] for name in ("first_ms", "second_ms", "first_cpu_ms")) > 0
    assert row["target"] == "batch 8 under 30 ms"
