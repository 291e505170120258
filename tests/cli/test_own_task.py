"""Tests of a user's package with a task, a law with its own observables and a check: no edit in icl."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import icl as package
from icl.errors import InputError
from tests.commands import Run, assert_refused, write

CODE = '''
import numpy as np
import torch
from dataclasses import dataclass

from icl.checks.verdict import Bound, Control, Finding
from icl.errors import InputError
from icl.tasks import TokenLaw, TokenPrompt


class Signs:
    """y = s x with a sign s, x uniform on [1, 2]."""

    def __init__(self, context: int = 3) -> None:
        self.dim, self.context = 1, context

    def law(self, seeds):
        return SignsLaw((self.context,) * len(seeds))


@dataclass(frozen=True)
class SignsLaw(TokenLaw):
    context_R: tuple
    dim = 1
    read_out = 1

    def replica(self, r):
        return SignsLaw(self.context_R[r : r + 1])

    def token_prompts(self, generators, batch):
        n = self.context_R[0]
        x = torch.from_numpy(np.stack([rng.uniform(1, 2, (batch, n + 1)) for rng in generators]))
        s = torch.from_numpy(np.stack([rng.choice([-1.0, 1.0], (batch, 1)) for rng in generators]))
        z = torch.stack([x, s * x], dim=-1)
        query = torch.stack([x[..., -1], torch.zeros_like(x[..., -1])], dim=-1)
        return TokenPrompt(z[:, :, :-1], query, (s * x)[..., -1], self.read_out)

    def observe(self, model):
        return Corner()

    def arrays(self):
        return {"mean_x": np.full(len(self.context_R), 1.5)}


class Corner:
    def names(self):
        return ["corner"]

    def at(self, model):
        P, Q = model.parametrization.stack()
        return {"corner": (P[:, 0, 0, -1, -1] * Q[:, 0, 0, 0, 0]).detach()}


class LearnsSomething:
    reference, claim = "nowhere", "The corner grows."

    def measure(self):
        return self._of(0.0)

    def judge(self, weights):
        if not isinstance(weights.law, SignsLaw):
            raise InputError("check.weights: about signs")
        P, Q = (weights.matrices[name].detach().double() for name in "PQ")
        return self._of(float((P[:, 0, -1, -1] * Q[:, 0, 0, 0]).min()))

    def _of(self, corner):
        verdict = "holds" if corner > 0.01 else "fails"
        bound = Bound(0.01, "a number of ours", of="corner", direction=">")
        return Finding(verdict, {"corner": corner}, bound, Control("no corner", 0.0, True))
'''
CHECK = """# @package check
# paper: mylab
# reference: nowhere
_target_: signs_lab.all.LearnsSomething
expected: holds
"""
ARGS = ["model=full", "model.layers=1", "model.init_std=0.3", "model.path=tokens", "train.estimator=sampled",
        "train.steps=300", "train.batch=64", "train.log_every=100", "train.clip=null", "optimizer.lr=0.02",
        "seeds=[0,1]", "name=mylab/signs", "callbacks.gradient.count=2",
        "callbacks.gradient.samples=4000"]  # fmt: skip
TASK = "_target_: signs_lab.all.Signs\ncontext: 3\n"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the overrides that bring the package in."""
    files = {"signs_lab/__init__.py": "", "signs_lab/all.py": CODE}
    write(tmp_path, files | {"conf/task/signs.yaml": TASK, "conf/check/mylab/corner.yaml": CHECK})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ICL_PACKAGES", "signs_lab")
    return ["--config-dir", str(tmp_path / "conf"), "task=signs", *ARGS]


def test_it_trains_is_stored_watched_judged_and_restored(icl: Run, lab: list[str]) -> None:
    found = icl("train", *lab, "checks=[mylab/corner]", "format=json")
    document = found.json
    assert found.code == 0 and document["status"] == "done"
    metrics = document["metrics"]
    assert metrics["exact_risk"]["mean"] is None and metrics["dist_preconditioned"]["mean"] is None
    assert metrics["corner"]["mean"] is not None and metrics["gradient_norm_stderr"]["mean"] > 0
    (verdict,) = document["verdicts"]
    assert verdict["check"] == "mylab/corner" and verdict["verdict"] == "holds"
    assert verdict["measured"]["corner"] == pytest.approx(min(metrics["corner"]["by_seed"].values()))

    run = package.load_run(document["run_dir"])
    assert run.weights["mean_x"].tolist() == [1.5, 1.5] and run.law.context_R == (3, 3)
    x, y = np.array([[1.2], [1.9], [1.1]]), np.array([-1.2, -1.9, -1.1])
    predicted_R = run.model(x, y, [1.5])
    z = np.column_stack([x, y])
    for r in range(2):
        P, Q = run.weights["P"][r, 0], run.weights["Q"][r, 0]
        by_hand = (P @ z.T @ z @ Q @ [1.5, 0])[-1] / 3
        assert float(predicted_R[r]) == pytest.approx(by_hand, rel=1e-12) and by_hand < 0
    prompt = run.law.token_prompts([np.random.default_rng(5), np.random.default_rng(6)], 20_000)
    loss_RB = (run.transformer.predict(prompt) - prompt.target_RB).square()
    for r, estimate in enumerate(metrics["risk_estimate"]["by_seed"].values()):
        stderr = metrics["risk_estimate_stderr"]["by_seed"][str(r)]
        error = math.hypot(stderr, float(loss_RB[r].std()) / loss_RB.shape[1] ** 0.5)
        assert abs(float(loss_RB[r].mean()) - estimate) < 5 * error

    again = icl("train", *lab, "checks=[mylab/corner]", "format=json").json
    assert again["cached"] and again["metrics"] == metrics
    weights = f"check.weights={document['run_dir']}"
    assert icl("check", *lab[:2], "check=mylab/corner", weights, "format=json").json["verdict"] == "holds"


def test_an_estimator_it_has_not_says_which_it_has(icl: Run, lab: list[str], outputs: Path) -> None:
    refused = icl("train", *(arg.replace("=sampled", "=expected") for arg in lab))
    assert_refused(refused, "use train.estimator=sampled", outputs)


def test_pictures_of_a_law_without_sigma(icl: Run, lab: list[str], outputs: Path) -> None:
    pictures = ["train.steps=20", "callbacks.heatmaps.count=1", "format=json"]
    found = icl("train", *lab, *pictures, logger="wandb_offline")
    assert found.code == 0 and list(outputs.glob("wandb/**/*.png")), found.err


def test_what_is_no_task_is_refused(icl: Run, lab: list[str]) -> None:
    refused = icl("train", *lab, "task._target_=signs_lab.all.Corner", "~task.context")
    assert_refused(refused, "must be a task: something with dim and law(seeds)")


def test_own_data_in_the_sign_of_the_labels(icl: Run) -> None:
    """Predict one prompt and a batch; a run of (8) predicts minus the last entry."""
    args = [
        "experiment=ahn/theorem3",
        "scale=smoke",
        "checks=[]",
        "train.steps=40",
        "callbacks.gradient.count=0",
    ]
    run = package.load_run(icl("train", *args, "format=json").json["run_dir"])
    rng = np.random.default_rng(0)
    x, w, xq = rng.standard_normal((4, 20, 5)), rng.standard_normal((4, 5)), rng.standard_normal((4, 5))
    y = np.einsum("bnd,bd->bn", x, w)
    batch_RB = run.model(x, y, xq)
    assert batch_RB.shape == (2, 4)
    assert torch.allclose(run.model(x[1], y[1], xq[1]), batch_RB[:, 1], rtol=1e-12)
    one_step = np.einsum("bd,rde,be->rb", np.einsum("bnd,bn->bd", x, y) / 20, run.A[:, 0], xq)
    assert np.sign(float((batch_RB * torch.from_numpy(one_step)).sum())) == 1
    with pytest.raises(InputError, match=r"x: has shape \(20, 4\), must be of x \(N, d\)"):
        run.model(x[0][:, :4], y[0], xq[0])
