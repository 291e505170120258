"""What is remembered of composed configs is what Hydra would say again."""

from pathlib import Path

import pytest

from icl.config.compose import Composed
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.jobs import compose_cache
from icl.jobs.compose_cache import PLACE, reusing_composed

OWN = "_target_: icl.checks.ahn.lemma1.Lemma1\ndim: 3\n"
ASKED = ("check", ["check=mylab/own", "scale=smoke"])


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """With a check of the user's own."""
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    folder = tmp_path / "conf/check/mylab"
    folder.mkdir(parents=True)
    (folder / "own.yaml").write_text(OWN)
    return Session(tmp_path / "outputs", configs=ConfigDirs(tmp_path / "conf"))


def asked(session: Session, *more: str) -> Composed:
    verb, overrides = ASKED
    with reusing_composed(session) as memory:
        return memory(session.configs, verb, [*overrides, *more])


@pytest.fixture
def by_hydra(session: Session, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The overrides Hydra was asked with since what is remembered was composed."""
    asked(session)
    calls, compose = [], compose_cache.compose

    def counted(configs: ConfigDirs, verb: str, overrides: list[str]) -> Composed:
        calls.append(overrides)
        return compose(configs, verb, overrides)

    monkeypatch.setattr(compose_cache, "compose", counted)
    return calls


def test_every_check_and_figure_comes_back_as_it_was(session: Session) -> None:
    kinds = [(kind, id) for kind in ("check", "figure") for id in session.configs.options(kind)]
    every = [(kind, [f"{kind}={id}", "scale=laptop"]) for kind, id in kinds[::5]]
    with reusing_composed(session) as memory:
        first = [memory(session.configs, *one) for one in every]
    with reusing_composed(session) as memory:
        assert len(memory.kept) == len(every)
        again = [memory(session.configs, *one) for one in every]
    assert [repr(composed) for composed in again] == [repr(composed) for composed in first]


def test_hydra_is_not_asked_twice(session: Session, by_hydra: list[list[str]]) -> None:
    assert asked(session).settings["check"]["dim"] == 3 and by_hydra == []
    assert asked(session, "check.dim=4").settings["check"]["dim"] == 4 and len(by_hydra) == 1


def test_but_after_a_change(
    session: Session, by_hydra: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_PROJECT", "mine")  # conf/logger/wandb.yaml names it
    assert asked(session).settings["logger"]["project"] == "mine" and len(by_hydra) == 1
    assert session.configs.user is not None
    (session.configs.user / "check/mylab/own.yaml").write_text(OWN.replace("3", "4"))
    assert asked(session).settings["check"]["dim"] == 4 and len(by_hydra) == 2
    place = session.outputs / PLACE
    for damaged in ("{", place.read_text().replace('"dim": 4', '"dim": 5')):
        place.write_text(damaged)
        assert asked(session).settings["check"]["dim"] == 4
    assert len(by_hydra) == 4


@pytest.mark.parametrize(
    "line",
    [
        "claim: ${now:%f}",
        "claim: ${oc.env:${oc.env:NOBODY,HOME},x}",
        "name: at\nclaim: ${${.name}:1,2,3}",
        "api_key: 0123456789",
        "1: one",
        "claim: .nan",
        "claim: .inf",
    ],
)
def test_what_cannot_be_known_or_must_not_be_written_is_not_kept(session: Session, line: str) -> None:
    assert session.configs.user is not None
    own = session.configs.user / "check/mylab/own.yaml"
    own.write_text(f"{OWN}{line}\n")
    asked(session)
    assert not (session.outputs / PLACE).exists()


def test_nor_with_an_override_that_asks(session: Session) -> None:
    assert asked(session, "format=${oc.env:NOBODY,json}").settings["format"] == "json"
    assert not (session.outputs / PLACE).exists()
