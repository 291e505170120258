import pytest


@pytest.fixture
def mutate(monkeypatch):
    """Puts `wrong` in the place of a function, which it is given first; what is no function as it is."""

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
