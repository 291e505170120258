"""Tests that constraints.txt pins all that the tests' environment draws in, within pyproject's ranges."""

import importlib.metadata as metadata
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert len({name for name, _ in found}) == len(found), "a package is pinned twice"
    return {name: Version(version) for name, version in found}


def project_requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own, extras = f"{project['name']}[", project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["dev"]]
    lines += [line for each in extras["dev"] if each.startswith(own) for line in extras[each[len(own) : -1]]]
    return [Requirement(line) for line in lines if not line.startswith(own)]


def drawn_in(requirements: list[Requirement]) -> list[tuple[str, Requirement]]:
    """Return (who requires it, the requirement) for all that `requirements` draw in, by the metadata found
    here."""
    found: list[tuple[str, Requirement]] = []
    waiting = [("icl", requirement) for requirement in requirements]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        parent, requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        found.append((parent, requirement))
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        if name == "torch" and Version(metadata.version(name)).public != str(pins()["torch"]):
            continue  # a torch that was there before brings its own requirements, which are not ours to pin
        for line in metadata.requires(name) or []:
            child = Requirement(line)
            if child.marker is None or any(
                child.marker.evaluate({"extra": extra}) for extra in extras | {""}
            ):
                waiting.append((name, child))
    return found


def test_all_that_is_drawn_in_is_pinned_within_its_range() -> None:
    pinned = pins()
    requirements = drawn_in(project_requirements())
    assert len({canonicalize_name(requirement.name) for _, requirement in requirements}) > 60
    for parent, requirement in requirements:
        name = canonicalize_name(requirement.name)
        assert name in pinned, f"{name}, which {parent} requires, is not pinned"
        assert requirement.specifier.contains(pinned[name], prereleases=True), (
            f"{parent} requires {requirement}"
        )


def test_every_extra_that_a_text_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named: set[str] = set()
    for folder in ("icl", "conf", "docs", "hydra_plugins"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".yaml"):
                text = path.read_text("utf-8")
                named |= set(re.findall(rf"{project['name']}\[(\w+)\]", text))
                assert not re.search(r"pip install '?icl(?!-)\b", text), path  # another package's name
    assert named and named <= set(project["optional-dependencies"])
