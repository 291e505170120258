"""Tests of every config, whoever adds it: it composes, its header names paper and reference, it names the
class's own settings with the class's own defaults, and no setting of a wrong type gets as far as a record.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from icl.config.objects import instantiate
from icl.errors import InputError
from icl.figures.look import KEYS
from icl.resolver import SCALES
from tests.conformance.configs import NOT_THE_CLASS_OWN, Config, class_of, configs, parameters, targets

REFERENCE = re.compile(
    "Theorem|Lemma|Eq|eq|Section|Figure|Proposition|Remark|Corollary|Appendix|Definition"
    "|statement|this project"
)


def not_of_the_class(config: Config) -> set[str]:
    """Return the keys that its class does not take: of a figure also how it looks."""
    return NOT_THE_CLASS_OWN | set(KEYS if config.group == "figure" else ())


def the_header_says_the_paper_and_the_place_in_it(config: Config) -> None:
    assert config.header["paper"] == config.name.partition("/")[0]
    assert REFERENCE.search(config.header["reference"])


def composes_at_every_scale(config: Config) -> None:
    by_scale = [config.composed(scale) for scale in SCALES]
    assert len({tuple(node) for node in by_scale}) == 1


def names_the_settings_of_its_class_and_no_other(config: Config) -> None:
    """Assert that a check or task names all settings, so that the file is the list of what can be set."""
    for key, node in targets(config.composed()):
        own = set(node) - not_of_the_class(config)
        known = parameters(class_of(node))
        assert own <= set(known), f"{key}: {own - set(known)}"
        if config.group in ("check", "task"):
            given = {"prefix"}  # by whoever builds it
            given |= {"seed", "samples"} - own if config.group == "check" else set()  # by conf/check.yaml
            assert own == set(known) - given, key


def has_the_defaults_of_its_class(config: Config) -> None:
    """Assert equality at laptop, the default scale: a check made in Python is the one of the command line."""
    for key, node in targets(config.composed()):
        for name, parameter in parameters(class_of(node)).items():
            if name in node and parameter.default is not inspect.Parameter.empty:
                default = parameter.default
                default = list(default) if isinstance(default, tuple) else default
                assert node[name] == default, f"{key}.{name}"


def can_be_made_at_every_scale(config: Config) -> None:
    for scale in SCALES:
        node = config.composed(scale)
        instantiate("figure", {key: value for key, value in node.items() if key not in (*KEYS, "caption")})


def says_what_it_claims(config: Config) -> None:
    cls = class_of(config.composed())
    assert REFERENCE.search(cls.where) and cls.claim.endswith(".") and cls.law and cls.title
    assert config.name == f"{cls.paper}/{cls.__module__.rpartition('.')[2]}"


def impossible(name: str, annotation: str) -> list[Any]:
    """Return values that a setting with this name and annotation cannot have."""
    wrong: list[Any] = ["nonsense", float("nan"), {"a": 1}, True]
    if "bool" in annotation or name == "read_out":  # 1 or -1
        wrong.remove(True)
    return wrong + ([-1, 1.5, None] if annotation == "int" and name != "read_out" else [])


def refuses_what_no_setting_can_be(config: Config) -> None:
    """Assert refusal by name and value, from the constructor alone: nothing has been measured or written
    then."""
    given = {"dim": 3} if config.group == "model" else {}
    for key, node in targets({config.group: config.composed("smoke")}):
        cls = class_of(node)
        settings = given | {k: v for k, v in node.items() if k not in not_of_the_class(config)}
        for name, parameter in parameters(cls).items():
            if name in (*given, "prefix"):
                continue
            told = re.escape(name if name == "seeds" else f"{key}.{name}")
            for value in impossible(name, str(parameter.annotation)):
                with pytest.raises(InputError, match=rf"{told}\b"):
                    cls(**settings | {name: value})


def counts_to_what_can_be_waited_for(config: Config) -> None:
    """Assert limits of counts: any context has its exact risk; of nothing else can there be a million
    times a million."""
    node = config.composed("smoke")
    cls, settings = class_of(node), {k: v for k, v in node.items() if k not in not_of_the_class(config)}
    for name, parameter in parameters(cls).items():
        if str(parameter.annotation) == "int" and name not in ("context", "seed"):
            with pytest.raises(InputError, match=rf"check\.{name}\b"):
                cls(**settings | {name: 10**12})


def takes_no_other_setting(config: Config) -> None:
    """Assert that a misspelt setting is refused by name, as tests/cli shows of one config of each kind."""
    for key, node in targets(config.composed()):
        if key == "trainer":  # takes those of Lightning's Trainer, and refuses any other itself
            continue
        kinds = {parameter.kind for parameter in parameters(class_of(node)).values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, key


OF_ALL = [composes_at_every_scale, takes_no_other_setting]
OF_A_CLASS = [names_the_settings_of_its_class_and_no_other, refuses_what_no_setting_can_be]
RULES: dict[str, list[Callable[[Config], None]]] = {
    "check": [
        *OF_ALL,
        *OF_A_CLASS,
        has_the_defaults_of_its_class,
        says_what_it_claims,
        counts_to_what_can_be_waited_for,
    ],
    "figure": [
        the_header_says_the_paper_and_the_place_in_it,
        *OF_ALL,
        *OF_A_CLASS,
        can_be_made_at_every_scale,
    ],
    "experiment": [the_header_says_the_paper_and_the_place_in_it, *OF_ALL],
    "task": [*OF_ALL, *OF_A_CLASS, has_the_defaults_of_its_class],
    "model": [*OF_ALL, *OF_A_CLASS],
}


@pytest.mark.parametrize("config", configs(*RULES), ids=str)
def test_holds_of(config: Config) -> None:
    for rule in RULES[config.group]:
        rule(config)
