"""Tests of archives of runs: thinning, and runs that are not finished."""

from pathlib import Path

import numpy as np
import pytest

from icl.errors import Interrupted
from icl.runs import archive
from icl.runs.archive import Archive, rounded
from icl.runs.record import RunRecord, load_run
from icl.runs.store import RunStore

NAME, DIGEST = ("a/b", "0123456789ab"), "f" * 16


def finished(outputs: Path, weights: dict[str, np.ndarray]) -> RunRecord:
    with RunStore(outputs).begin(*NAME, {"settings": {}}, DIGEST) as run:
        return run.finish(metrics=[], weights=weights, summary={}, steps=3, seeds=[0])


def test_numbers_are_rounded_to_thirteen_bits_and_no_more(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    values = generator.lognormal(0, 20, 5000) * generator.choice([-1, 1], 5000)
    near = rounded(values)
    assert near.dtype == np.float32 and (np.abs(near / values - 1) <= 2.0**-13).all()
    mantissa, _ = np.frexp(near.astype(np.float64))
    assert (mantissa * 2**13 % 1 == 0).all()
    kept = np.array([0.0, -0.0, 1.0, 3.0, 2.0**60, np.inf, -np.inf])
    assert (rounded(kept) == kept).all() and np.isnan(rounded(np.array([np.nan, 1.1]))[0])
    large = np.array([1e300, 1e-300, 1.0])
    assert rounded(large).dtype == np.float64 and np.allclose(rounded(large), large, rtol=2.0**-13, atol=0)
    assert rounded(np.array([1 + 2.0**-12 + 2.0**-14]))[0] == 1 + 2.0**-12, "to the nearest"
    assert rounded(np.array([2 - 2.0**-20]))[0] == 2, "into the next power of two"


def test_a_thinned_run_is_whole_and_keeps_its_identity(tmp_path: Path) -> None:
    """Thin the history of a large run and a large computed array, and nothing else."""
    final = np.arange(3000.0).reshape(1, 3000)
    history = np.arange(41)[None, :, None] + np.linspace(0, 1, 4000)[None, None]
    stored = {"A": final, "A_history": history, "history_steps": np.arange(41), "seeds": np.array([0])}
    one = finished(tmp_path / "one", stored)
    large = np.random.default_rng(1).normal(size=archive.LARGE_ARRAY + 1)
    two = finished(tmp_path / "two", {"loss": large, "few": large[:10]})
    small = finished(tmp_path / "small", {"few": large[:10]})
    wide = np.ones((1, 300, 8000)) * np.arange(300)[None, :, None]
    three = finished(tmp_path / "three", {"A_history": wide, "history_steps": np.arange(300)})
    for run, size in ((one, 0.5), (two, 0.5), (small, 1.0), (three, 0.01)):
        target = RunStore(tmp_path / "kept" / run.path.parents[3].name).path(*NAME)
        assert archive.copy_run(run.path, target) and not archive.copy_run(run.path, target)
        found = load_run(target)
        assert found.mark == run.mark, "what is made from it is found by this"
        assert (target / "weights.npz").stat().st_size <= size * (run.path / "weights.npz").stat().st_size
    kept = {name: RunStore(tmp_path / "kept" / name).path(*NAME) for name in ("one", "two", "small", "three")}
    weights = load_run(kept["one"]).weights
    assert weights["history_steps"].tolist() == [*range(0, 41, 4)]
    assert (weights["A_history"] == history[:, ::4]).all() and (weights["A"] == final).all()
    weights = load_run(kept["three"]).weights
    assert weights["history_steps"].size == 0 and weights["A_history"].shape == (1, 0, 8000)
    weights = load_run(kept["two"]).weights
    assert (weights["few"] == large[:10]).all() and np.allclose(weights["loss"], large, rtol=2.0**-13)
    assert (kept["small"] / "weights.npz").read_bytes() == (small.path / "weights.npz").read_bytes()
    assert "thinned" not in load_run(kept["small"]).run


def test_an_unfinished_run_goes_on_from_an_archive(tmp_path: Path) -> None:
    """Restore its newest checkpoint under the code that began it; the finished run takes its place."""
    store = RunStore(tmp_path / "outputs")
    with pytest.raises(Interrupted), store.begin(*NAME, {}, DIGEST) as run:
        run.save_checkpoint({"step": 1})
        run.save_checkpoint({"step": 2})
        raise Interrupted(15)
    target = RunStore(tmp_path / "kept").path(*NAME)
    assert archive.copy_run(store.path(*NAME), target) and not archive.copy_run(store.path(*NAME), target)
    assert len(list((target / "checkpoints").iterdir())) == 1
    kept = Archive(tmp_path / "kept", "kept")
    assert kept.run(*NAME) is None and kept.unfinished(*NAME)["digest"] == DIGEST
    kept.restore(*NAME, tmp_path / "elsewhere")
    with RunStore(tmp_path / "elsewhere").begin(*NAME, {"settings": {}}, DIGEST) as run:
        assert run.checkpoint == {"step": 2} and run.resumed == 1
        done = run.finish(metrics=[], weights={"A": np.ones(3)}, summary={}, steps=3, seeds=[0])
    assert archive.copy_run(done.path, target) and kept.unfinished(*NAME) is None
    assert kept.run(*NAME) is not None and not (target / "checkpoints").exists()
