"""Tests of a run of giannou/lsa from the command line; its curriculum is part of its fingerprint."""

from tests.commands import Run

LINE = (
    "experiment=giannou/lsa", "model.layers=2", "task.condition=10", "task.dim=5", "task.context=25",
    "model.mask=true", "seeds=[0,1,2]", "format=json", "scale=smoke", "train.steps=8", "train.batch=16",
    "callbacks.gradient.count=0", "optimizer.schedule.warmup=1",
)  # fmt: skip


def test_another_curriculum_is_another_run(icl_command: Run) -> None:
    plain = icl_command("train", *LINE).json
    assert plain["status"] == "done" and set(plain["metrics"]["loss"]["by_seed"]) == {"0", "1", "2"}
    cut = icl_command("train", *LINE, "callbacks.curriculum.every=4", "callbacks.curriculum.dims=1").json
    assert not cut["cached"] and cut["fingerprint"] != plain["fingerprint"]
    assert cut["metrics"]["loss"]["mean"] != plain["metrics"]["loss"]["mean"]
    assert icl_command("train", *LINE).json["cached"]
    late = icl_command("train", *LINE, "callbacks.progress.seconds=1").json
    assert late["cached"] and late["fingerprint"] == plain["fingerprint"]
