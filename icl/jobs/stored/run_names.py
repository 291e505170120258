"""Names of runs by what differs between them: `ahn/theorem3 lr=0.02 n=4`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from icl.config.values import flatten
from icl.redact import redact
from icl.runs.sweeps import KEYS_WITHOUT_EFFECT, SEEDS, has_no_effect

SYMBOLS = {"task.context": "n", "task.dim": "d"}  # of the papers; else a key's last part
_NO_DIFFERENCE = {*KEYS_WITHOUT_EFFECT, "name", "seed", "checkpoint"}  # of runs, whatever their values
_ORDER = ("scale", "model", "task", "optimizer", "train", *SEEDS)  # of a name's keys; others come last
_MOST = 6  # keys in a name, unless it takes more to tell the runs apart
_LONGEST = 115  # W&B takes 128 characters
_ENTRIES = 6  # of a list, before it is cut
_EXACT = 17  # digits of a float
_TARGET = "_target_"

Node = Mapping[str, Any]


class Named(Protocol):
    """A run as far as its name depends on it."""

    @property
    def experiment(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def config(self) -> Node: ...

    @property
    def choices(self) -> Mapping[str, Any]:
        """The option of each config group, {} if it is not known."""

    @property
    def overrides(self) -> Sequence[str]:
        """The overrides as they were typed, () if they are not known."""


class Label(NamedTuple):
    """A run's name; `words` are the part after the experiment, `differs` the same as keys and values, all of
    them."""

    name: str
    words: str
    differs: dict[str, Any]


def labels_of(runs: Sequence[Named]) -> list[Label]:
    """Return a label for each run: its experiment, and what differs from the others of that experiment.

    Where two configs do not differ, the fingerprint's first digits are added.
    """
    found = [Label(run.experiment, "", {}) for run in runs]
    for members in _by_experiment(runs):
        group = [runs[i] for i in members]
        differing = differing_keys([run.config for run in group])
        texts = _in_words(group, differing)
        times = Counter(texts)
        for i, text, own in zip(members, texts, differing, strict=True):
            words = text if times[text] == 1 else f"{text} ({runs[i].fingerprint[:6]})".strip()
            found[i] = Label(f"{runs[i].experiment} {words}".strip(), words, own)
    return found


def names_of(runs: Sequence[Named]) -> list[str]:
    """Return a name for each run, such as `ahn/theorem3 lr=0.02 n=4`."""
    return [label.name for label in labels_of(runs)]


def differing_keys(configs: Sequence[Node]) -> list[dict[str, Any]]:
    """Return the dotted keys whose values differ among `configs`, with the values of each."""
    found: list[dict[str, Any]] = [{} for _ in configs]
    for top in _sorted(dict.fromkeys(key for config in configs for key in config)):
        if top in _NO_DIFFERENCE:
            continue
        nodes = {id(config.get(top)): config.get(top) for config in configs}  # most runs share most groups
        leaves = {
            number: flatten(node, top) if isinstance(node, Mapping) else {top: node}
            for number, node in nodes.items()
        }
        for key in _differing(leaves.values()):
            for own, config in zip(found, configs, strict=True):
                of_config = leaves[id(config.get(top))]
                if key in of_config:
                    own[key] = of_config[key]
    return found


def name_of_overrides(experiment: str, overrides: Sequence[str], *, with_seeds: bool = True) -> str:
    """Return the name of a run, check or figure by what was typed: `ahn/theorem3 lr=0.02 n=4`."""
    left_out = {"experiment", "check", "figure", "name", "checkpoint", *(() if with_seeds else SEEDS)}
    pairs = [override.lstrip("+").partition("=")[::2] for override in redact(list(overrides))]
    kept = {
        key: value.strip("'\"")
        for key, value in pairs
        if key not in left_out and not key.startswith("~") and not has_no_effect(key)
    }
    short = short_keys(kept)
    return shortened(" ".join([experiment, *(f"{short[key]}={value}" for key, value in kept.items())]))


def grouped(name: str, fingerprint: str) -> str:
    """Return the name of a group in W&B, which no other group has."""
    return f"{shortened(name)} ({fingerprint[:4]})"


def shortened(name: str) -> str:
    """Return the name, cut where it is longer than W&B takes."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 4].rsplit(' ', 1)[0]} ..."


def short_keys(keys: Iterable[str]) -> dict[str, str]:
    """Return each key's symbol or last part, or the whole key where two keys share the last part."""
    short = {key: SYMBOLS.get(key) or key.rpartition(".")[2] for key in keys}
    times = Counter(short.values())
    return {key: text if times[text] == 1 else key for key, text in short.items()}


def _by_experiment(runs: Sequence[Named]) -> Iterable[list[int]]:
    found: dict[str, list[int]] = {}
    for i, run in enumerate(runs):
        found.setdefault(run.experiment, []).append(i)
    return found.values()


def _in_words(runs: Sequence[Named], differing: Sequence[Node]) -> list[str]:
    """Return what differs between runs of one experiment."""
    columns = _columns(runs, differing)
    options = {key.removesuffix(f".{_TARGET}") for own in differing for key in own if key not in columns}
    chosen = _chosen(columns, options, {key for run in runs for key in _typed_keys(run)})
    short = short_keys(chosen)
    texts = {key: _texts(columns[key]) for key in chosen}
    return [
        " ".join(f"{short[key]}={texts[key][i]}" for key in chosen if columns[key][i] is not _ABSENT)
        for i in range(len(runs))
    ]


class _Absent:
    """The value of a key that a config does not have."""


_ABSENT = _Absent()


def _columns(runs: Sequence[Named], differing: Sequence[Node]) -> dict[str, list[Any]]:
    """Return each differing key with its values; a group's class becomes the group and its option."""
    keys = dict.fromkeys(key for own in differing for key in own)
    columns: dict[str, list[Any]] = {}
    for key in keys:
        group, _, last = key.rpartition(".")
        if last == _TARGET and group:
            columns[group] = [_option(run, own, group) for run, own in zip(runs, differing, strict=True)]
        elif key == "seeds" and all(isinstance(o.get(key), list) and len(o[key]) == 1 for o in differing):
            columns["seed"] = [own[key][0] for own in differing]
        elif last != _TARGET:
            columns[key] = [own.get(key, _ABSENT) for own in differing]
    return {key: columns[key] for key in _sorted(columns)}


def _option(run: Named, own: Node, group: str) -> Any:
    """Return the option chosen for a group, or else the name of its class."""
    chosen = run.choices.get(group.replace(".", "/"))
    if isinstance(chosen, str):
        return chosen
    target = own.get(f"{group}.{_TARGET}", _ABSENT)
    return target.rpartition(".")[2] if isinstance(target, str) else target


def _typed_keys(run: Named) -> set[str]:
    return {override.partition("=")[0].lstrip("+") for override in run.overrides}


def _chosen(columns: Mapping[str, list[Any]], options: set[str], typed: set[str]) -> list[str]:
    """Return the keys of the names. What follows from the scale or from a group's option is left out, unless
    somebody typed it."""
    codes = {key: [_code(value) for value in column] for key, column in columns.items()}
    kept: list[str] = []
    for key in columns:
        of_scale = ["scale"] if key not in options else []
        above = [key[:i] for i, letter in enumerate(key) if letter == "."]
        causes = [codes[cause] for cause in (*above, *of_scale) if cause in codes and cause != key]
        follows = any(_follows(codes[key], cause) for cause in causes)
        if not follows or key in typed:
            kept.append(key)
    if len(kept) <= _MOST:
        return kept
    needed, classes = [], [()] * len(next(iter(codes.values())))
    for key in kept:
        finer: list[Any] = list(zip(classes, codes[key], strict=True))
        if len(set(finer)) > len(set(classes)):
            needed.append(key)
            classes = finer
    more = [key for key in kept if key not in needed][: max(_MOST - len(needed), 0)]
    return [key for key in kept if key in needed or key in more]


def _follows(column: Sequence[str], cause: Sequence[str]) -> bool:
    """Return whether each value of `cause` has one value of `column`."""
    return len(set(zip(cause, column, strict=True))) == len(set(cause))


def _differing(leaves: Iterable[Node]) -> list[str]:
    """Return the keys of which not all of `leaves` have one and the same value."""
    listed = list(leaves)
    keys = dict.fromkeys(key for own in listed for key in own)
    return [key for key in keys if len({_code(own.get(key, _ABSENT)) for own in listed}) > 1]


def _code(value: Any) -> str:
    if isinstance(value, str | int | float):
        return repr(value)
    return "" if value is _ABSENT else json.dumps(value, sort_keys=True, default=str)


def _sorted(keys: Iterable[str]) -> list[str]:
    def place(key: str) -> int:
        top = key.partition(".")[0]
        return _ORDER.index(top) if top in _ORDER else len(_ORDER)

    return sorted(keys, key=place)


def _texts(column: Sequence[Any]) -> list[str]:
    """Return the values as text, with as many digits and entries as it takes to tell them apart."""
    distinct = len({_code(value) for value in column})
    for digits, entries in ((4, _ENTRIES), (8, _ENTRIES), (_EXACT, None)):
        texts = [_text(value, digits, entries) for value in column]
        if len(set(texts)) == distinct:
            break
    return texts


def _text(value: Any, digits: int, entries: int | None) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float):
        return f"{value:.{digits}g}" if digits < _EXACT else repr(value)
    if isinstance(value, list | tuple):
        shown = [_text(entry, digits, entries) for entry in value[:entries]]
        return f"[{','.join([*shown, *(['...'] if len(shown) < len(value) else [])])}]"
    return "" if value is _ABSENT else str(value)
