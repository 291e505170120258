import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import icl
from icl.config.compose import compose
from icl.config.search_path import ConfigDirs, conf_dir
from icl.errors import InputError
from icl.experiments.xie.fig6 import ASKING
from icl.runs import code
from icl.runs.code import (
    DRAWING,
    TRAINING,
    NotHere,
    Sources,
    code_digest,
    current_digest,
    derived_digest,
    targets,
)

ICL = Path(icl.__file__).parent
NOT_NUMBERS = ("icl.cli", "icl.jobs", "icl.loggers", "icl.report", "icl.errors", "icl.runs.store")
NOT_NUMBERS += ("icl.runs.code",)


def named(group: str) -> list[str]:
    folder = conf_dir() / group
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


RECORDS = [(group, name) for group in ("check", "figure", "experiment") for name in named(group)]


@functools.cache
def roots_of(group: str, name: str) -> tuple[str, ...]:
    if group == "experiment":
        settings = compose(ConfigDirs(), "train", [f"experiment={name}"]).settings
        return (*targets(*(settings[key] for key in ("task", "model", "optimizer"))), *TRAINING)
    own = yaml.safe_load((conf_dir() / group / f"{name}.yaml").read_text())
    return (*targets(own), *(DRAWING if group == "figure" else ()))


def below(folder: Path) -> Callable[[str], list[Path]]:
    def find(package: str) -> list[Path]:
        if not (folder / package).is_dir():
            raise NotHere(package)
        return [folder / package]

    return find


def write(folder: Path, files: dict[str, str]) -> Sources:
    for name, source in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return Sources(below(folder))


# What lab/check.py says, and the modules it reaches beside itself. lab/inner/__init__ offers names only,
# lab/busy/__init__ does something when it is imported.
LAB = {
    "icl/__init__.py": "def check():\n    from icl import cli\n",
    "icl/cli.py": "",
    "icl/theory.py": "",
    "icl/errors.py": "",
    "other/__init__.py": "",
    "lab/__init__.py": '"""Ours."""\n__version__ = "1"\n',
    "lab/a.py": "import lab.b",
    "lab/b.py": "from lab import a",
    "lab/inner/__init__.py": "from .x import X as Y\nfrom lab.inner.z import Z\ndef f(): ...\n",
    "lab/inner/x.py": "",
    "lab/inner/z.py": "",
    "lab/inner/w.py": "from ..c import C",
    "lab/c.py": "",
    "lab/busy/__init__.py": "from lab.c import C\nregister()\n",
    "lab/busy/v.py": "",
    "lab/torn.py": "import lab.c\n)",
}
REACHED = {
    "": "",
    "import lab.a": "a b",
    "from lab import a": "a b",
    "from . import c": "c",
    "from .inner.w import W": "inner.w c",
    "from lab.inner import Y": "inner.x",
    "from lab.inner import w": "inner.w c",
    "from lab.inner import f": "inner inner.x inner.z",
    "from lab.inner import *": "inner inner.x inner.z",
    "import lab.inner": "inner inner.x inner.z",
    "from lab.busy.v import V": "busy busy.v c",
    "def f():\n    import lab.c": "c",
    "with x:\n    try:\n        pass\n    except E:\n        import lab.c": "c",
    "async def f():\n    import lab.c": "c",
    "match x:\n    case 1:\n        import lab.c": "c",
    "class A:\n    for i in x:\n        pass\n    else:\n        import lab.c": "c",
    "f = lambda: 0\nif x:\n    pass\nelse:\n    import lab.c": "c",
    "if TYPE_CHECKING:\n    import lab.a": "",
    "if typing.TYPE_CHECKING:\n    import lab.a\nelse:\n    import lab.c": "c",
    "import importlib\nimportlib.import_module('lab.c')": "c",
    "from importlib import import_module\nx = [import_module('lab.c'), import_module(name)]": "c",
    "'''import lab.a'''\n# import lab.a": "",
    "import numpy, other\nfrom os import path": "",
    "from lab import torn": "torn",
    "from icl.theory import x": "icl.theory",
    "from icl.errors import InputError": "",
    "import icl": "icl icl.cli",
}


@pytest.mark.parametrize("source", REACHED)
def test_what_an_import_reaches(source: str, tmp_path: Path) -> None:
    sources = write(tmp_path, LAB | {"lab/check.py": source})
    names = [name if name.startswith("icl") else f"lab.{name}" for name in REACHED[source].split()]
    assert set(sources.closure(["lab.check.Check"])) == {"lab.check", *names}


def test_a_package_of_the_user_that_does_something_counts_as_a_whole_parent(tmp_path: Path) -> None:
    sources = write(tmp_path, LAB | {"lab/__init__.py": "import lab.c\ntorch.set_default_dtype(x)"})
    assert set(sources.closure(["lab.inner.x.X"])) == {"lab", "lab.c", "lab.inner.x"}


def test_roots(tmp_path: Path) -> None:
    sources = write(tmp_path, LAB)
    assert set(sources.closure(["lab.inner.Y", "icl.theory"])) == {"lab.inner.x", "icl.theory"}
    assert set(sources.closure(["lab.a", "lab.inner.w.W"])) == {"lab.a", "lab.b", "lab.inner.w", "lab.c"}
    assert sources.digest(["lab.a", "lab.c"]) == sources.digest(["lab.c", "lab.a", "lab.c"])
    with pytest.raises(InputError, match=r"no module lab\.nope"):
        sources.closure(["lab.nope.X"])
    with pytest.raises(NotHere):
        sources.closure(["nolab.X"])


def test_single_files_namespaces_and_compiled_modules(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text("import alone")
    sources = Sources(lambda package: [tmp_path / "alone.py"] if package == "alone" else [tmp_path / package])
    assert set(sources.closure(["alone.X"])) == {"alone"}
    suffix = code._SUFFIXES[1]
    write(tmp_path, {"lab/sub/a.py": "from lab.sub import fast"})
    (tmp_path / f"lab/sub/fast{suffix}").write_bytes(b"import nothing\0")
    assert set(sources.closure(["lab.sub.a.A"])) == {"lab.sub.a", "lab.sub.fast"}


def test_targets_are_ours_or_the_users() -> None:
    node = {"_target_": "torch.optim.Adam", "schedule": {"_target_": "icl.a.B"}, "l": [{"_target_": "my.C"}]}
    assert targets(node, {"x": 1}, None) == ["icl.a.B", "my.C"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Copy icl, to be edited."""
    folder = tmp_path / "tree"
    shutil.copytree(ICL, folder / "icl", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


_read = functools.cache(code.read_module)


def test_a_record_depends_on_its_closure_and_on_nothing_else(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited: set[Path] = set()  # a comment at the end: other bytes, the same imports

    def read(name: str, path: Path) -> code.Module:
        found = _read(name, path)
        return found._replace(digest=b"edited" + found.digest) if path in edited else found

    monkeypatch.setattr(code, "read_module", read)
    everything, tried = set((tree / "icl").rglob("*.py")), set()
    for group, name in RECORDS:
        roots, sources = roots_of(group, name), Sources(below(tree))
        digest, closure = sources.digest(roots), sources.closure(roots)
        assert not [module for module in closure if module.startswith(NOT_NUMBERS)], name
        reached = set(closure.values())
        assert reached < everything and len(reached) < len(everything) / 3
        for path in reached - tried:  # each with one record that reaches it
            edited.add(path)
            sources._read.cache_clear()
            assert sources.digest(roots) != digest, path
            edited.clear()
        tried |= reached
        edited |= everything - reached
        assert Sources(below(tree)).digest(roots) == digest, name
        edited.clear()
    new = {path.with_name("nobody_imports_this.py") for path in reached}
    for path in new:
        path.write_text("import icl.cli\n")
    assert Sources(below(tree)).digest(roots) == digest


def test_any_byte_of_a_file_counts_and_its_folder_does_not(tmp_path: Path) -> None:
    files = {"lab/a.py": "from lab import b\n", "lab/b.py": "x = 1\n"}
    digest = write(tmp_path / "one", files).digest(["lab.a.A"])
    for name, source in files.items():
        for other in (source + "# a comment\n", source.replace(" ", "  ")):
            assert write(tmp_path / "one", files | {name: other}).digest(["lab.a.A"]) != digest
    assert write(tmp_path / "moved", files).digest(["lab.a.A"]) == digest


def in_its_closure(group: str, name: str) -> set[str]:
    return set(code._HERE.closure(roots_of(group, name)))


def test_what_the_papers_proofs_and_algorithms_say_counts() -> None:
    for name in ("gd_forward", "lemma3"):
        assert "icl.constructions.xie.initial_guess" in in_its_closure("check", f"xie/{name}")
    assert "icl.algorithms.descent" in in_its_closure("figure", "ahn/fig6")
    of_training = {"icl.training.recorder", "icl.models.gram", "icl.theory.ahn.invariant_risk"}
    assert of_training <= in_its_closure("experiment", "ahn/theorem3")
    hours = set(code._HERE.closure(ASKING))
    assert hours == {*ASKING, "icl.experiments.xie.hub"}, "on the code that asks, and no other"


def test_todays_digest(tmp_path: Path) -> None:
    record = {"code": list(ASKING)}
    assert current_digest(record, tmp_path) == code_digest(ASKING)
    assert current_digest({"code": ["not_installed.check.X"]}, tmp_path) is None, "nothing calls it stale"
    for gone in ({}, {"code": []}, {"code": ["icl.checks.gone.Check"]}):
        assert current_digest(gone, tmp_path) not in (None, code_digest(ASKING))


def test_a_drawing_is_of_these_numbers() -> None:
    run = {"mark": ["f", "d", {"weights.npz": "1"}]}
    one = derived_digest("c", {"a": run})
    assert one == derived_digest("c", {"a": {**run, "run": "runs/x", "more": 1}})
    others = [("d", {"a": run}), ("c", {"b": run}), ("c", {})]
    others += [("c", {"a": {"mark": ["f", "d", {"weights.npz": "2"}]}})]
    others += [("c", {"a": {"mark": ["g", "d", {"weights.npz": "1"}]}})]  # another run by the same code
    assert one not in {derived_digest(digest, runs) for digest, runs in others}
