"""A module of theory with one operator changed, put where a test takes its functions from."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest


def changed(module: ModuleType, old: str, new: str, at: int = 0) -> dict[str, Any]:
    """Return the names of the module whose source has `new` at the occurrence `at` of `old`."""
    parts = inspect.getsource(module).split(old)
    assert len(parts) > at + 1, f"{module.__name__} has {len(parts) - 1} times {old}"
    names = {"__name__": module.__name__}
    exec(compile(old.join(parts[: at + 1]) + new + old.join(parts[at + 1 :]), module.__name__, "exec"), names)
    return names


def _name(value: Any) -> str:
    return getattr(value, "__name__", str(value))  # no address: test processes must agree on names


def sees(module: ModuleType, *cases: tuple[str, str, int, Callable[..., None], Any]) -> Any:
    """Return a test that each change (old, new, at) of the module fails this test of it, given these
    arguments."""

    @pytest.mark.parametrize(("old", "new", "at", "test", "given"), cases, ids=_name)
    def test(old: str, new: str, at: int, test: Callable[..., None], given: Any) -> None:
        names, told = changed(module, old, new, at), inspect.unwrap(test).__globals__
        taken = {name: names[name] for name, value in vars(module).items() if told.get(name) is value}
        with patch.dict(told, taken), pytest.raises((AssertionError, ValueError)):
            test(*given)

    return test
