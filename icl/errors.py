"""Errors that a user can mend, in one line, and the validation that raises them."""

from __future__ import annotations

import contextlib
import difflib
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

INT64 = 2**63 - 1
SUGGESTION = "; did you mean "  # ends a message; the command line prints it as a second line
SYNONYMS = {
    "n": "context", "N": "context", "C": "context", "d": "dim", "D": "dim", "L": "layers", "depth": "layers",
    "learning_rate": "lr", "eta": "lr", "batch_size": "batch", "iterations": "steps", "Sigma": "covariance",
    "sigma": "covariance", "cov": "covariance", "T": "length", "H": "heads", "S": "seeds",
}  # fmt: skip


class InputError(ValueError):
    """Unusable input: the command line prints it as one line and exits 2."""


class Unavailable(InputError):
    """A request that needs something that is not here, such as a language model: exit 2 alone, listed
    as skipped by `icl reproduce`."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM, after the state has been saved."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"interrupted by signal {signum}")
        self.signum = signum


_FULL, _ASKED = "HYDRA_FULL_ERROR", "ICL_FULL_ERROR"


def full_errors() -> bool:
    """Return True if the user's HYDRA_FULL_ERROR asks for tracebacks."""
    return os.environ.get(_ASKED, os.environ.get(_FULL)) == "1"


@contextlib.contextmanager
def hydra_raises() -> Iterator[None]:
    """Let Hydra raise errors, which it prints over several lines else."""
    before = {name: os.environ.get(name) for name in (_FULL, _ASKED)}
    os.environ[_ASKED], os.environ[_FULL] = before[_FULL] or "0", "1"
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def lines_of(error: BaseException) -> list[str]:
    """Return an error in one line, and in a second one what its message suggests."""
    problem, mark, suggestion = one_line(error).rpartition(SUGGESTION)
    return [problem, f"did you mean {suggestion}"] if mark else [suggestion]


def nearest(name: str, choices: Iterable[str]) -> str:
    """`; did you mean X?` for the closest choice, or nothing; `X or Y` where several folders hold it."""
    choices = list(choices)
    in_folders = sorted({choice for choice in choices if choice.endswith(f"/{name}")}) if name else []
    close = in_folders or difflib.get_close_matches(name, choices, n=1, cutoff=0.66)
    return suggest(close)


def nearest_key(key: str, known: Sequence[str]) -> str:
    """`; did you mean X?` for the key with the same last part, or its synonym, else for the closest one."""
    parent, _, name = key.rpartition(".")
    alike = [k for k in known if k.rpartition(".")[2] in (name, SYNONYMS.get(name))]
    beside = [k for k in alike if parent and k.rpartition(".")[0] == parent]
    above = [k for k in known if parent and (f"{key}.".startswith(f"{k}.") or "." not in k)]
    close = difflib.get_close_matches(key, set(alike or known).difference(above), n=1, cutoff=0.75)
    return suggest(beside or close or sorted(alike, key=lambda k: k.startswith(("search", "callbacks")))[:1])


def suggest(choices: Sequence[str]) -> str:
    return f"{SUGGESTION}{' or '.join(choices)}?" if choices else ""


def one_of(key: str, value: Any, choices: Sequence[str]) -> str:
    if value not in choices:
        raise InputError(f"{key}={value}: must be one of {', '.join(choices)}{nearest(str(value), choices)}")
    return str(value)


def whole(key: str, value: Any, low: int, high: int | None = None) -> int:
    """`value` as an int in [low, high], or in what 64 bits hold; booleans and fractions are refused."""
    fits = isinstance(value, int) and not isinstance(value, bool)
    most = INT64 if high is None else high
    if not fits or value < low or value > most:
        open_ended = high is None and not (fits and value > most)
        span = f"an integer of at least {low}" if open_ended else f"an integer from {low} to {most}"
        raise InputError(f"{key}={value}: must be {span}")
    return int(value)


def rising(key: str, value: Any, low: int, high: int, least: int = 1) -> list[int]:
    """Return integers in rising order, at least `least` of them."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) < least:
        raise InputError(f"{key}={value}: must be a list of at least {least} integers")
    numbers = [whole(key, number, low, high) for number in value]
    if sorted(set(numbers)) != numbers:
        raise InputError(f"{key}={numbers}: must be in rising order")
    return numbers


def real(key: str, value: Any, low: float | None = None, *, open_low: bool = False) -> float:
    """`value` as a finite float, at least (or above) `low` where given."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or (low is not None and (value < low or (open_low and value == low))):
        span = "" if low is None else f" {'above' if open_low else 'of at least'} {low:g}"
        raise InputError(f"{key}={value}: must be a finite number{span}")
    return float(value)


def reals(
    key: str, value: Any, length: int | None, low: float | None = None, *, open_low: bool = False
) -> list[float]:
    """Return a list of `length` finite floats, or of at least one."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not (length or value):
        numbers = f"{length} numbers" if length else "at least one number"
        raise InputError(f"{key}={value}: must be a list of {numbers}")
    if length is not None and len(value) != length:
        raise InputError(f"{key}={list(value)}: has {len(value)} numbers, must have {length}")
    return [real(key, entry, low, open_low=open_low) for entry in value]


def given_matrix(key: str, value: Any, rows: int, columns: int) -> np.ndarray:
    """Finite float64 numbers, from a nested list or a .npy file."""
    import numpy as np

    if isinstance(value, str):
        path = Path(value)
        if path.suffix != ".npy" or not path.is_file():
            raise InputError(f"{key}={value}: no such .npy file")
        try:
            matrix = np.load(path, "r", allow_pickle=False)  # whatever size it claims
        except (OSError, ValueError, EOFError):
            raise InputError(f"{key}={value}: not a readable .npy array") from None
    else:
        try:
            matrix = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"{key}: must be a {rows} x {columns} nested list of numbers or a .npy file"
            ) from None
    if not isinstance(matrix, np.ndarray) or matrix.shape != (rows, columns):
        raise InputError(f"{key}: has shape {np.shape(matrix)}, must have ({rows}, {columns})")
    if matrix.dtype.kind not in "iuf" or not np.isfinite(matrix).all():
        raise InputError(f"{key}: every entry must be a finite number")
    return matrix.astype(np.float64)
