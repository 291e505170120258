import pytest


@pytest.fixture
def mutate(monkeypatch):
    """Replace a function by `wrong(original)`, or any other attribute by `wrong`."""

    def put(where, name, wrong):
        for place in where if isinstance(where, tuple) else (where,):
            right = getattr(place, name)
            changed = (
                (lambda *given, right=right, **more: wrong(right, *given, **more))
                if callable(wrong)
                else wrong
            )
            monkeypatch.setattr(place, name, changed)

    return put
