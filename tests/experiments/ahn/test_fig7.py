"""Figure 7 asks for the right runs."""

from __future__ import annotations

import pytest

from icl.experiments.ahn import fig7
from tests.records import Asking, record


def test_every_depth_is_trained_on_both_kinds_of_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = record(run={"seeds": [4, 7]}, config={"task": {"context": 9}})
    runner = Asking(lambda *asked: trained)
    monkeypatch.setattr(fig7, "compare", lambda runner, name, trained, plain, sizes: name)
    records = fig7.Fig7([1, 3], test_contexts=5, search_contexts=6).records(runner)
    for depth, (plain, trained) in zip([1, 3], [runner.asked[:2], runner.asked[2:]], strict=True):
        assert plain == ("ahn/fig7", {"model.layers": depth})
        assert trained == ("ahn/tail", {"model.layers": depth, "task.context": 9, "seeds": [4, 7]})
    assert records["losses_L3"] == "ahn/fig7_losses"
    assert list(records) == [
        f"{kind}_L{depth}" for depth in (1, 3) for kind in ("trained", "plain", "losses")
    ]
