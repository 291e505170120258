"""Names of runs, checks, figures and sweeps by what was typed: `ahn/theorem3 lr=0.02 n=4`; of the columns of
tables, which the dashboard's charts draw."""

from collections import Counter
from collections.abc import Iterable, Sequence

from icl.redact import redact
from icl.runs.fingerprint import SEEDS, has_no_effect

SYMBOLS = {"task.context": "n", "task.dim": "d"}  # of the papers; else a key's last part
STEP = "trainer/global_step"  # Lightning's axis of what is logged
WEIGHTS = "weights/all"  # one picture a step
LAYERS = ("step", "seed", "layer", "trained", "exact")  # of the table `layers`
CURVES = ("step", "quantity", "mean", "low", "high")  # of the risk, its exact levels, gradient and Hessian
JUDGED = (
    "check", "reference", "claim", "verdict", "expected", "measured", "direction", "bound", "control",
    "in_words", "control_in_words",
)  # of the table `verdicts`  # fmt: skip
SWEEP = ("setting", "metric", "mean", "low", "high", "count", "key", "x", "rest", "theory")
_IN_THE_NAME = ("experiment", "check", "figure", "name", "checkpoint")
_LONGEST = 115  # W&B takes 128 characters


def name_of_overrides(experiment: str, overrides: Sequence[str], *, with_seeds: bool = True) -> str:
    """Return the name of a run, check or figure by its overrides, cut where it is longer than W&B takes."""
    return shortened(" ".join([experiment, words_of(overrides, with_seeds=with_seeds)]).strip())


def words_of(overrides: Sequence[str], *, with_seeds: bool = True) -> str:
    """Return the overrides on which numbers depend, with short keys."""
    typed = [override.lstrip("+").partition("=")[::2] for override in redact(list(overrides))]
    left_out = _IN_THE_NAME if with_seeds else (*_IN_THE_NAME, *SEEDS)
    kept = {
        key: value.strip("'\"")
        for key, value in typed
        if key not in left_out and not key.startswith("~") and not has_no_effect(key)
    }
    short = short_keys(kept)
    return " ".join(f"{short[key]}={value}" for key, value in kept.items())


def grouped(name: str, fingerprint: str) -> str:
    """Return the name of a group in W&B, which no other group has."""
    return f"{shortened(name)} ({fingerprint[:4]})"


def shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 4].rsplit(' ', 1)[0]} ..."


def short_keys(keys: Iterable[str]) -> dict[str, str]:
    """Return each key's symbol or last part, or the whole key where two keys share the last part."""
    short = {key: SYMBOLS.get(key) or key.rpartition(".")[2] for key in keys}
    times = Counter(short.values())
    return {key: text if times[text] == 1 else key for key, text in short.items()}
