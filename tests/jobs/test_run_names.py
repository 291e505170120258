"""Names of runs by what differs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from icl.jobs.stored.run_names import labels_of, name_of_overrides, names_of, shortened


class Run(NamedTuple):
    experiment: str
    fingerprint: str
    config: Mapping[str, Any]
    choices: Mapping[str, Any] = {}
    overrides: Sequence[str] = ()


def config(*, scale: str = "laptop", steps: int = 100, lr: float = 0.02, **more: Any) -> dict[str, Any]:
    return {
        "name": "ahn/theorem3",
        "scale": scale,
        "seeds": [0, 1],
        "logger": more.pop("logger", {}),
        "task": {"dim": 5, "context": more.pop("n", 20)},
        "optimizer": {"_target_": "torch.optim.Adam", "lr": lr, **more},
        "train": {"steps": steps},
    }


def names(*configs: dict[str, Any]) -> list[str]:
    return names_of([Run("ahn/theorem3", f"{i + 1}" * 12, config) for i, config in enumerate(configs)])


def test_a_run_is_named_by_the_keys_that_differ() -> None:
    assert names(config()) == ["ahn/theorem3"]
    found = names(config(), config(lr=0.05, n=4), config(logger={"mode": "none"}, lr=0.1))
    assert found == ["ahn/theorem3 n=20 lr=0.02", "ahn/theorem3 n=4 lr=0.05", "ahn/theorem3 n=20 lr=0.1"]


def test_what_follows_from_the_scale_or_from_an_option_is_no_part_of_the_name() -> None:
    sgd = config() | {"optimizer": {"_target_": "torch.optim.SGD", "lr": 0.02, "momentum": 0.9}}
    assert names(config(), sgd) == ["ahn/theorem3 optimizer=Adam", "ahn/theorem3 optimizer=SGD"]
    small = config(scale="smoke", steps=10)
    assert names(config(), small) == ["ahn/theorem3 scale=laptop", "ahn/theorem3 scale=smoke"]
    typed = Run("ahn/theorem3", "1" * 12, small, {"optimizer": "adam"}, ("train.steps=10",))
    assert names_of([Run("ahn/theorem3", "0" * 12, config()), typed]) == [
        "ahn/theorem3 scale=laptop steps=100",
        "ahn/theorem3 scale=smoke steps=10",
    ]
    chosen = Run("ahn/theorem3", "1" * 12, sgd, {"optimizer": "mine"})
    assert names_of([typed, chosen])[1].split()[-2:] == ["optimizer=mine", "steps=100"]


def test_no_two_runs_share_a_name() -> None:
    close = names(config(lr=0.1), config(lr=0.1 + 1e-9), config(lr=0.1))
    assert close == [
        "ahn/theorem3 lr=0.1 (111111)",
        "ahn/theorem3 lr=0.100000001",
        "ahn/theorem3 lr=0.1 (333333)",
    ]
    lists = [config() | {"seeds": list(range(count))} for count in (8, 9)]
    assert names(*lists) == [
        "ahn/theorem3 seeds=[0,1,2,3,4,5,6,7]",
        "ahn/theorem3 seeds=[0,1,2,3,4,5,6,7,8]",
    ]


def test_many_keys_are_cut_to_those_that_tell_runs_apart() -> None:
    many = [config(**{f"option{j}": (i >> j) & 1 for j in range(9)}) for i in (0, 2**9 - 1)]
    both = names(*many)
    assert len(set(both)) == 2 and all(name.count("=") == 6 for name in both)
    every = names(*(config(**{f"option{j}": (i >> j) & 1 for j in range(9)}) for i in range(2**9)))
    assert len(set(every)) == 2**9


def test_differences_are_those_among_runs_of_one_experiment() -> None:
    runs = [Run("a", "0" * 12, config()), Run("b", "1" * 12, config(n=7)), Run("a", "2" * 12, config(lr=1.0))]
    assert [label.differs for label in labels_of(runs)] == [{"optimizer.lr": 0.02}, {}, {"optimizer.lr": 1.0}]
    without = config()
    del without["optimizer"]["lr"]
    both = labels_of([runs[0], Run("a", "3" * 12, without)])
    assert [label.differs for label in both] == [{"optimizer.lr": 0.02}, {}]
    assert [label.words for label in both] == ["lr=0.02", ""]


def test_a_run_alone_is_named_by_what_was_typed() -> None:
    typed = ["experiment=ahn/theorem3", "scale=smoke", "optimizer.lr=0.02", "task.context=4", "seed=3"]
    typed += ["logger=none", "paths.outputs=/x", "~callbacks.heatmaps", "hydra/launcher=joblib"]
    assert name_of_overrides("ahn/theorem3", typed) == "ahn/theorem3 scale=smoke lr=0.02 n=4 seed=3"
    assert name_of_overrides("a", typed, with_seeds=False) == "a scale=smoke lr=0.02 n=4"
    same_last = ["optimizer.schedule.every=7", "callbacks.mine.every=5"]
    assert name_of_overrides("a", same_last) == "a optimizer.schedule.every=7 callbacks.mine.every=5"
    assert "hunter" not in name_of_overrides("a", ["task.password=hunter2hunter2"])
    assert len(shortened("a " + " ".join(f"key{i}=0.123" for i in range(50)))) <= 120
