"""A law defined by how its tokens are drawn, with what its class declares as known."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from icl.errors import InputError
from icl.tasks.estimators import SampledGram, SampledTokens
from icl.tasks.law import Estimator, Generators, Law, Observables, RiskFunction
from icl.tasks.prompts import GramPrompt, TokenPrompt

# What a subclass may change without drawing other prompts.
_FREE = {
    "observe",
    "arrays",
    "replica",
    "encode",
    "exact_risk",
    "exact_where",
    "estimators",
    "declared",
    "new_tasks",
}


class TokenLaw(ABC):
    """The contract `icl.tasks.law.Law` for a class that defines `dim`, `context_R`, `replica` and
    `token_prompts`: such a law trains on samples, has no exact risk, and its runs observe nothing of their
    own.

    `declared` names what a class knows of the prompts *as it draws them*. A subclass that draws otherwise has
    none of it: each name falls back to what holds of any law, or is refused. What still holds it lists
    in a `declared` of its own, or by writing the member anew.
    """

    declared: ClassVar[tuple[str, ...]] = ()
    read_out: int = -1
    context_R: tuple[int, ...]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        owner: type[TokenLaw] = next(base for base in cls.__mro__[1:] if "declared" in vars(base))  # type: ignore[assignment]
        changed = {name for name in _names(owner) if _defined(cls, name) is not _defined(owner, name)}
        drawn = changed - _FREE
        kept = vars(cls).get("declared")
        if kept is None and drawn and drawn <= set(owner.declared):
            raise TypeError(
                f"{cls.__name__} changes {', '.join(sorted(drawn))} but not token_prompts, which defines the "
                "law; if the law is the same, say so in `declared`"
            )
        if kept is None:
            kept = () if drawn else owner.declared
        for name in owner.declared:
            if name not in kept and name not in changed:
                setattr(cls, name, vars(TokenLaw).get(name, _Undeclared(name)))
        cls.declared = (*kept, *(n for n in owner.declared if n in changed and n not in kept))

    @abstractmethod
    def replica(self, r: int) -> Self: ...

    @property
    def new_tasks(self) -> Law | None:
        """The law of tasks that are not trained on, where those that are, are finitely many."""
        return None

    @abstractmethod
    def token_prompts(self, generators: Generators, batch: int) -> TokenPrompt: ...

    def gram_prompts(self, generators: Generators, batch: int) -> GramPrompt:
        return self.token_prompts(generators, batch).gram()

    def encode(self, x_RBND: Tensor, y_RBN: Tensor, x_query_RBD: Tensor) -> TokenPrompt:
        context_RBNP = torch.cat([x_RBND, y_RBN[..., None]], dim=-1)
        query_RBP = torch.nn.functional.pad(x_query_RBD, (0, 1))
        unknown_RB = torch.full_like(query_RBP[..., 0], torch.nan)
        return TokenPrompt(context_RBNP, query_RBP, unknown_RB, self.read_out)

    def estimators(self, model: Any) -> Mapping[str, Callable[[], Estimator]]:
        tokens = model.path == "tokens"
        if (tokens or type(self).gram_prompts is TokenLaw.gram_prompts) and len(set(self.context_R)) > 1:
            where = "model.path=tokens" if tokens else f"{type(self).__name__} draws tokens"
            raise InputError(f"task.context: must be one length for all seeds where {where}")
        return {"sampled": lambda: SampledTokens(self) if tokens else SampledGram(self, model)}

    def exact_risk(self, model: Any) -> RiskFunction | None:
        return None

    @property
    def exact_where(self) -> str:
        return f"{type(self).__name__} declares none"

    def coordinates(self, model: Any) -> Mapping[str, tuple[Tensor, Tensor]]:
        return {}

    def observe(self, model: Any) -> Observables:
        return NothingObserved()

    def arrays(self) -> Mapping[str, np.ndarray]:
        return {}


class NothingObserved:
    """Observables of runs that record only loss, risk and gradient."""

    def names(self) -> Sequence[str]:
        return ()

    def at(self, model: Any) -> Mapping[str, Tensor]:
        return {}


class _Undeclared:
    """Stands where a subclass would have inherited what its own prompts need not fulfil."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, law: object, cls: type) -> Any:
        if law is None:
            return self
        raise InputError(
            f"{cls.__name__}.{self.name}: {cls.__name__} draws its own prompts and does not declare this"
        )


def _names(owner: type) -> set[str]:
    """Everything a class has under a name of its own, inherited or not."""
    found = {name for base in owner.__mro__[:-1] for name in vars(base)}
    return {name for name in found if not name.startswith("__")} - {"_abc_impl"}


def _defined(cls: type, name: str) -> Any:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
