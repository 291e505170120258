"""Tests of `checkpoint=true`: a file that Lightning reads, in a process that has never seen the run."""

from pathlib import Path

import numpy as np
import pytest
import torch

from icl.random import generator
from icl.training.lightning_checkpoint import TrainedModule
from icl.training.load import load_run
from tests.commands import Run
from tests.plans import QUIET
from tests.processes import SERVER


def _reads(checkpoint: str, predicted: str) -> None:
    module = TrainedModule.load_from_checkpoint(checkpoint, weights_only=True)
    prompt = module.law.gram_prompts([generator(seed, "check") for seed in module.seeds], 5)
    np.save(predicted, module(prompt).detach().numpy())


DOUBLE = "trainer.precision=64-true"
WHITENED = ("train.estimator=tilted", "train.coordinates=whitened", "train.clip=null")
LBFGS = ("experiment=ahn/theorem4_lbfgs", "train.clip=null", "train.batch=50")


@pytest.mark.parametrize("options", [(), WHITENED, LBFGS], ids=["plain", "whitened", "lbfgs"])
def test_a_fresh_process_reads_it(tiny: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    document = tiny("checkpoint=true", "format=json", DOUBLE, *options).json
    reader = SERVER.Process(target=_reads, args=(document["checkpoint"], str(tmp_path / "predicted.npy")))
    reader.start()
    reader.join()
    run = load_run(document["run_dir"])
    prompt = run.law.gram_prompts([generator(seed, "check") for seed in run.run["seeds"]], 5)
    expected_RB = run.transformer.predict(prompt).detach().numpy()
    # Whitened weights go through two solves with Sigma^{1/2}, whose condition number is 4.
    bound = 1e4 * np.finfo(float).eps * np.abs(expected_RB).max()
    assert np.abs(np.load(tmp_path / "predicted.npy") - expected_RB).max() <= bound


def test_it_is_written_when_asked_for_and_once(tiny: Run) -> None:
    first = tiny("format=json").json
    path = Path(first["run_dir"]) / "checkpoints" / "lightning.ckpt"
    assert first["checkpoint"] is None and not path.exists()
    asked = tiny("format=json", "checkpoint=true").json
    assert asked["cached"] and asked["checkpoint"] == str(path)
    assert asked["fingerprint"] == first["fingerprint"]
    written = path.stat().st_mtime_ns
    assert tiny("format=json", "checkpoint=true").json["cached"] and path.stat().st_mtime_ns == written
    content = torch.load(path, weights_only=True)
    assert content["global_step"] == 4
    assert {"task", "model", "optimizer", "train", "precision", "seeds"} == set(content["hyper_parameters"])
    stored = load_run(first["run_dir"]).A
    assert np.array_equal(content["state_dict"]["trained.A"].double().numpy(), stored)
    forced = tiny("format=json", "force=true").json
    assert forced["checkpoint"] is None and not path.exists(), "of other weights"
    assert tiny("checkpoint=maybe").code == 2


def test_it_trains_on_under_a_stock_trainer(tiny: Run) -> None:
    """Continue from the weights it has, on prompts of its own law."""
    import pytorch_lightning as pl
    from torch.utils.data import DataLoader

    from icl.training.estimators import make_estimator
    from icl.training.stream import PromptStream

    document = tiny("checkpoint=true", "format=json", "trainer.precision=64-true").json
    module = TrainedModule.load_from_checkpoint(document["checkpoint"], weights_only=True)
    before = module.trained["A"].detach().clone()
    estimator = make_estimator("expected", module.model, module.law)
    stream = PromptStream(estimator, module.seeds, 8, 2, module.total_steps, 0, torch.float64)
    trainer = pl.Trainer(precision="64-true", logger=False, **QUIET)
    trainer.fit(module, DataLoader(stream, batch_size=None))
    assert trainer.global_step == module.total_steps == 4
    assert not torch.equal(module.trained["A"], before)
    assert module.hparams["train"]["steps"] == 4
