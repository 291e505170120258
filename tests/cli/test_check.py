"""Tests of `icl check`: the JSON document, exit codes, many at once, and verdicts on given weights."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl.checks.statement import Measured
from tests.commands import Run

KEYS = {
    "check", "paper", "reference", "claim", "verdict", "expected", "settings", "measured", "bound", "control",
    "notes", "seconds", "cached", "title", "origin", "meanings", "sentence", "control_sentence", "inputs",
    "record",
}  # fmt: skip
EQ7 = 1 / ((20 - 1) / (2 * 20) + (5 + 2) / 20)  # theorem 5's constant at D = 5, N = 20


def measures(m: Measured, verdict: str) -> None:
    m.zero("max_error", int(verdict == "fails"), "one where it fails")
    m.control("a wrong one", 3)
    if verdict == "undecided":
        m.undecided("it is asked to be")


def test_one_document(icl: Run) -> None:
    lemma = ["check", "check=ahn/lemma1", "scale=smoke", "check.dim=3", "check.samples=8", "format=json"]
    result = icl(*lemma)
    document = result.json
    assert result.code == 0 and set(document) >= KEYS and not document["cached"]
    assert document["check"] == "ahn/lemma1" and document["paper"] == "ahn"
    assert document["settings"]["dim"] == 3 and document["settings"]["samples"] == 8
    assert set(document["control"]) >= {"description", "measured", "rejected"}
    assert icl(*lemma).json == document | {"cached": True}
    assert not icl(*lemma, "force=true").json["cached"]
    assert not icl(*lemma, "check.seed=1").json["cached"]
    assert icl(*lemma, "check.expected=fails").json["cached"]


@pytest.mark.parametrize(
    ("verdict", "expected", "code"),
    [
        ("holds", "holds", 0), ("fails", "fails", 0), ("undecided", "undecided", 0), ("fails", "holds", 1),
        ("holds", "fails", 1), ("holds", "undecided", 1), ("undecided", "holds", 3),
    ],
)  # fmt: skip
def test_exit_codes(
    verdict: str, expected: str, code: int, icl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icl.checks.ahn.lemma1.Lemma1.measure", lambda self, m: measures(m, verdict))
    result = icl("check", "check=ahn/lemma1", f"check.expected={expected}", "format=json")
    assert (result.code, result.json["verdict"], result.json["expected"]) == (code, verdict, expected)
    # A stored verdict is held against what is expected now.
    assert icl("check", "check=ahn/lemma1", f"check.expected={verdict}").code == 0
    assert icl("check", "check=ahn/lemma1", "format=json").json["expected"] == "holds"


@pytest.mark.parametrize("error", [RuntimeError("a\nb"), SystemExit(0), MemoryError()])
def test_a_crash_exits_4_and_stores_nothing(
    error: BaseException, icl: Run, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(self: Any, m: Measured) -> None:
        raise error

    monkeypatch.setattr("icl.checks.ahn.lemma1.Lemma1.measure", crash)
    result = icl("check", "check=ahn/lemma1")
    assert (result.code, result.out, result.err.count("\n")) == (4, "", 1)
    assert list(outputs.glob("checks/**/*.json")) == []
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    assert "Traceback" in icl("check", "check=ahn/lemma1").err


def test_what_a_check_prints_stays_off_stdout(icl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def noisy(self: Any, m: Measured) -> None:
        print("noise from Python")
        subprocess.run(["echo", "noise from a child"], check=True)
        measures(m, "holds")

    monkeypatch.setattr("icl.checks.ahn.lemma1.Lemma1.measure", noisy)
    result = icl("check", "check=ahn/lemma1", "tries=0", "format=json")
    assert result.json["verdict"] == "holds" and result.err.count("noise") == 2


@pytest.fixture
def two_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce all checks to two quick ones."""
    monkeypatch.setattr("icl.jobs.execution.run_many.ids_of", lambda *asked: ["ahn/lemma1", "ahn/theorem1"])


def test_many(icl: Run, two_checks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    result = icl("check", "check=all", "scale=smoke", "check.seed=1", "format=json")
    assert result.code == 0 and result.json["seconds"] > 0
    assert [d["check"] for d in result.json["checks"]] == ["ahn/lemma1", "ahn/theorem1"]
    assert all(set(d) >= KEYS and d["settings"]["seed"] == 1 for d in result.json["checks"])
    again = icl("check", "check=ahn/all", "scale=smoke", "check.seed=1", "format=json").json
    assert all(d["cached"] for d in again["checks"])
    monkeypatch.setenv("COLUMNS", "80")
    text = icl("check", "check=all", "scale=smoke", "check.seed=1", "check.expected=fails")
    assert text.code == 1 and max(map(len, text.out.splitlines())) <= 80 and "…" not in text.out
    assert text.out.count("✓ holds !") == text.out.count("Expected: fails.") == 2
    assert "2 checks: 2 other than expected" in text.out


WEIGHTS: dict[str, dict[str, Any]] = {
    "ahn/theorem1": {"P": np.diag([0.0] * 5 + [1])[None], "Q": -np.diag([1.0] * 5 + [0])[None]},
    "ahn/theorem5": {
        "P": np.diag([0.0] * 5 + [1])[None], "Q": -EQ7 * np.diag([1.0] * 5 + [0])[None], "activation": "relu",
    },
}  # fmt: skip
VERDICT = {"ahn/theorem5": "holds"}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_of_a_file(name: str, icl: Run, tmp_path: Path) -> None:
    path = tmp_path / "hand.npz"
    np.savez(path, **WEIGHTS[name])
    args = ["check", f"check={name}", f"check.weights={path}", "scale=smoke", "format=json"]
    document = icl(*args).json
    assert document["verdict"] == VERDICT.get(name, "undecided")
    assert document["settings"]["weights"] == str(path)
    (given,) = document["inputs"]
    assert (given["key"], given["path"], given["shape"]) == ("check.weights", str(path), [])
    named = f"for the weights of hand.npz (sha256 {given['sha256'][:8]}) at d = 5, n = "
    assert named in document["sentence"]
    assert icl(*args).json["cached"]
    changed = {k: v if k == "activation" else 0.5 * np.asarray(v) for k, v in WEIGHTS[name].items()}
    np.savez(path, **changed)
    assert not icl(*args).json["cached"]  # by content, not by name


@pytest.mark.parametrize(
    ("arrays", "invalid_reason"),
    [
        ({"A": np.eye(5)}, "must have the shape (layers, 5, 5)"),
        ({"A": np.eye(4)[None]}, "must have the shape (layers, 5, 5)"),
        ({"A": np.full((1, 5, 5), np.nan)}, "finite"),
        ({"A": np.zeros((0, 5, 5))}, "must have the shape (layers, 5, 5), has (0, 5, 5)"),
        ({"A": np.zeros((2, 1, 5, 5))}, "one set of weights"),
        ({"A": np.zeros((3, 5, 5)), "B": np.zeros((1, 5, 5))}, "B has 1 layers, must have 2"),
        ({"A": np.zeros((1, 5, 5)), "C": np.zeros(1)}, "must hold A, A and B, or P and Q"),
        ({"P": np.zeros((1, 6, 6)), "Q": np.zeros((2, 6, 6))}, "Q has 2 layers, must have 1"),
        ({"P": np.zeros((1, 6, 6)), "Q": np.zeros((1, 6, 6))}, "Theorem 3 is about family sparse_a"),
        ({"A": np.zeros((1, 5, 5)), "activation": "softmax"}, "Theorem 3 is about family sparse_a"),
    ],
)
def test_weights_that_will_not_do(
    arrays: dict[str, Any], invalid_reason: str, icl: Run, tmp_path: Path, outputs: Path
) -> None:
    np.savez(tmp_path / "hand.npz", **arrays)
    result = icl("check", "check=ahn/theorem3", f"check.weights={tmp_path}/hand.npz", "scale=smoke")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert invalid_reason in result.err and not outputs.exists()


def test_a_given_file_is_named_by_content_and_sets_the_dimension(
    icl: Run, tmp_path: Path, outputs: Path
) -> None:
    asked = ["check", "check=ahn/lemma4", "scale=smoke", "format=json"]
    for name, scale in (("one", 1.0), ("two", 2.0)):
        np.save(tmp_path / f"{name}.npy", scale * np.eye(3))
    first, second = (icl(*asked, f"check.covariance={tmp_path}/{name}.npy").json for name in ("one", "two"))
    digest = hashlib.sha256((tmp_path / "one.npy").read_bytes()).hexdigest()
    given = {"key": "check.covariance", "path": f"{tmp_path}/one.npy", "sha256": digest, "shape": [3, 3]}
    assert first["inputs"] == [given] and first["settings"]["dim"] == 3
    assert f"d = 3, n = 20, L = 3, Sigma from one.npy (3 x 3, sha256 {digest[:8]})" in first["sentence"]
    assert first["record"] != second["record"] and first["sentence"] != second["sentence"]
    stored = json.loads(Path(first["record"]).read_text())["document"]
    assert stored["inputs"] == [given] and stored["sentence"] == first["sentence"]
    assert icl(*asked, "check.dim=3", f"check.covariance={tmp_path}/one.npy").json["cached"]
    refused = icl(*asked, "check.dim=5", f"check.covariance={tmp_path}/one.npy")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "icl: check.covariance: has shape (3, 3), must have (5, 5)\n"
