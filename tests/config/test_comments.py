"""Tests of the comments in configs."""

from pathlib import Path

from icl.config import comments
from icl.config.search_path import ConfigDirs


def test_comments_by_key_where_the_option_is_put_and_the_users_own_win(tmp_path: Path) -> None:
    (tmp_path / "schedule").mkdir()
    (tmp_path / "schedule/mine.yaml").write_text(
        "# @package optimizer.schedule\n# Steps of two sizes. More about them.\n_target_: mylab.Mine\n"
        "sizes: ['#1', 2] # one after the other\nnested:\n  deep: null # at the bottom\nbare: 1\n"
    )
    configs = ConfigDirs(tmp_path)
    found = comments.of_keys(
        configs, "train", {"schedule": "mine", "task": "linear_regression", "model": None}
    )
    assert found["optimizer.schedule.sizes"] == "one after the other"
    assert found["optimizer.schedule.nested.deep"] == "at the bottom"
    assert "optimizer.schedule.bare" not in found
    assert (
        found["scale"]
        == ("smoke: seconds, claims about training stay undecided | laptop: minutes | paper: hours")
        and found["task.guess_bias"] == "b"
    )
    assert found["train.clip"].startswith("bound on the gradient")
    assert comments.of_option(configs, "schedule", "mine") == "Steps of two sizes"
    assert comments.of_option(configs, "model", "sparse_a").startswith("ahn eq. (8): P = [[0, 0], [0, 1]]")
    assert comments.of_option(configs, "check", "ahn/lemma1").startswith("Lemma 1: ")
    assert comments.of_option(configs, "model", "absent") == ""


def test_every_shipped_option_says_what_it_is() -> None:
    configs = ConfigDirs()
    for group in sorted(configs.groups - {"hydra", "paper", "paths"}):
        for option in configs.options(group):
            assert comments.of_option(configs, group, option), (group, option)


def test_a_folder_of_bytecode_is_no_group(tmp_path: Path) -> None:
    for name in ("model", "__pycache__", ".ipynb_checkpoints"):
        (tmp_path / name).mkdir()
    assert ConfigDirs(tmp_path).groups == ConfigDirs().groups | {"model"}
    assert not [name for name in ConfigDirs(tmp_path).groups if name.startswith((".", "_"))]
