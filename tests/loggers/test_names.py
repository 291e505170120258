"""Names by what was typed."""

from icl.loggers.names import grouped, name_of_overrides, shortened

TYPED = [
    "experiment=ahn/theorem3", "scale=smoke", "optimizer.lr=0.02", "task.context=4", "seed=3", "logger=none",
    "paths.outputs=/x", "~callbacks.heatmaps", "hydra/launcher=joblib", "task.password=hunter2hunter2",
]  # fmt: skip


def test_a_name_is_what_numbers_depend_on() -> None:
    name = name_of_overrides("ahn/theorem3", TYPED)
    assert name == "ahn/theorem3 scale=smoke lr=0.02 n=4 seed=3 password=<redacted>"
    assert name_of_overrides("a", TYPED[:5], with_seeds=False) == "a scale=smoke lr=0.02 n=4"
    same_last = ["optimizer.schedule.every=7", "callbacks.mine.every=5"]
    assert name_of_overrides("a", same_last) == "a optimizer.schedule.every=7 callbacks.mine.every=5"


def test_a_name_fits_what_wandb_takes() -> None:
    long = "a " + " ".join(f"key{i}=0.123" for i in range(50))
    assert len(shortened(long)) <= 120 and len(grouped(long, "0" * 12)) <= 128
