"""The typed config of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

Node = Mapping[str, Any]
Place = tuple[str, ...]  # of a value: ("seeds",), ("train", "clip")


@dataclass(frozen=True)
class TrainConfig:
    """The groups of a training config, and the whole as its record stores it."""

    task: Node
    model: Node
    optimizer: Node
    train: Node
    trainer: Node
    callbacks: Mapping[str, Node]  # those that are not null
    seeds: tuple[int, ...]
    stored: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """Return the config of a request or of a record."""
        groups = {name: stored[name] for name in ("task", "model", "optimizer", "train", "trainer")}
        callbacks = {name: node for name, node in stored["callbacks"].items() if node is not None}
        return cls(**groups, callbacks=callbacks, seeds=tuple(stored["seeds"]), stored=stored)

    def value(self, place: Place) -> Any:
        node: Any = self.stored
        for name in place:
            node = node.get(name)
        return node

    def with_values(self, values: Mapping[Place, Any]) -> Self:
        """Return a copy with other values at these places."""
        stored = dict(self.stored)
        for place, value in values.items():
            group, *names = place
            stored[group] = {**stored[group], names[0]: value} if names else value
        return type(self).of(stored)
