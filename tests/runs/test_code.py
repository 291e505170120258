import functools
from pathlib import Path

import pytest
import yaml

import icl
from icl.config.compose import compose
from icl.config.search_path import ConfigDirs, conf_dir
from icl.runs import code
from icl.runs.code import (
    DRAWING,
    TRAINING,
    NotHere,
    code_digest,
    current_digest,
    derived_digest,
    reached,
    targets,
)

HERE = Path(icl.__file__).parent


@functools.cache
def roots_of(group: str, name: str) -> tuple[str, ...]:
    if group == "experiment":
        settings = compose(ConfigDirs(), "train", [f"experiment={name}"]).settings
        return (*targets(*(settings[key] for key in ("task", "model", "optimizer"))), *TRAINING)
    own = yaml.safe_load((conf_dir() / group / f"{name}.yaml").read_text())
    return (*targets(own), *(DRAWING if group == "figure" else ()))


def edited(path: Path) -> None:
    path.write_text(f"{path.read_text()}\n# a comment\n")


RECORDS = [
    ("check", "lds/lemma3_1", ["theory/words.py", "theory/lds/__init__.py"], ["theory/lu/__init__.py"]),
    ("experiment", "ahn/theorem3",
     ["training/ensemble.py", "models/gram.py", "kernel/tiles.cpp", "random.py"],
     ["figures/style.py", "theory/xie/__init__.py", "checks/ahn/__init__.py"]),
    ("figure", "ahn/fig6", ["algorithms/descent.py", "figures/style.py"], ["checks/lu/__init__.py"]),
]  # fmt: skip


@pytest.mark.parametrize(("group", "name", "counting", "others"), RECORDS)
def test_a_record_depends_on_its_rooms_and_papers(
    group: str, name: str, counting: list[str], others: list[str], tree: Path
) -> None:
    roots = roots_of(group, name)
    before = code_digest(roots)
    for file in [*others, "jobs/requests/check.py", "runs/store.py", "errors.py", "cli/show.py"]:
        edited(tree / file)
    assert code_digest(roots) == before
    for file in counting:
        edited(tree / file)
        assert code_digest(roots) != before, file
        before = code_digest(roots)


def imported(source: str) -> set[str]:
    found = [place for name in code._imports(source) for place in code._place(name)]
    return {place.relative_to(HERE).as_posix() for place in found}


SOURCES = {
    "from icl.theory.ahn import invariant_risk": {"theory/ahn"},
    "from icl.theory import (\n    ahn,\n    lu,\n)": {"theory", "theory/ahn", "theory/lu"},
    "def f():\n    import icl.theory.words": {"theory"},
    "from icl import random": {"random.py"},
    "if TYPE_CHECKING:\n    from icl.theory import words\n\nfrom icl.tasks import Law": {"tasks"},
    "from icl.errors import InputError\nfrom icl.runs.store import RunStore\nimport icl": set(),
}


@pytest.mark.parametrize("source", SOURCES)
def test_what_an_import_reaches(source: str) -> None:
    assert imported(source) == SOURCES[source]


def test_a_users_package_counts_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(code, "_read", code._read.__wrapped__)
    (tmp_path / "digest_lab" / "inner").mkdir(parents=True)
    for name, source in {"__init__": "", "a": "from icl.theory import words", "inner/b": ""}.items():
        (tmp_path / f"digest_lab/{name}.py").write_text(source)
    (tmp_path / "digest_alone.py").write_text("")
    roots = ("digest_lab.a.A",)
    assert reached(roots) == {tmp_path / "digest_lab", HERE / "theory"}
    assert reached(["digest_alone.X"]) == {tmp_path / "digest_alone.py"}
    before = code._digest.__wrapped__(roots)
    (tmp_path / "digest_lab/inner/b.py").write_text("# a comment")
    assert code._digest.__wrapped__(roots) != before
    with pytest.raises(NotHere):
        reached(["digest_nolab.X"])


def test_targets_are_ours_or_the_users() -> None:
    node = {"_target_": "torch.optim.Adam", "schedule": {"_target_": "icl.a.B"}, "l": [{"_target_": "my.C"}]}
    assert targets(node, {"x": 1}, None) == ["icl.a.B", "my.C"]


def test_todays_digest(tmp_path: Path) -> None:
    record = {"code": list(TRAINING)}
    assert current_digest(record, tmp_path) == code_digest(TRAINING)
    assert current_digest({"code": ["not_installed.check.X"]}, tmp_path) is None, "nothing calls it stale"
    for gone in ({}, {"code": []}, {"code": ["icl.checks.gone.Check"]}):
        assert current_digest(gone, tmp_path) not in (None, code_digest(TRAINING))


def test_a_drawing_is_of_these_numbers() -> None:
    run = {"content_id": ["f", "d", {"weights.npz": "1"}]}
    one = derived_digest("c", {"a": run})
    assert one == derived_digest("c", {"a": {**run, "run": "runs/x", "more": 1}})
    others = [("d", {"a": run}), ("c", {"b": run}), ("c", {})]
    others += [("c", {"a": {"content_id": ["f", "d", {"weights.npz": "2"}]}})]
    others += [("c", {"a": {"content_id": ["g", "d", {"weights.npz": "1"}]}})]  # another run by the same code
    assert one not in {derived_digest(digest, runs) for digest, runs in others}
