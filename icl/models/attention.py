"""A transformer is a parametrization, a path (tokens or Gram matrices) and an activation."""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from icl.errors import InputError, one_of
from icl.models import gram, tokens
from icl.models.batched import batch_last
from icl.models.parametrizations import PATHS, Parametrization
from icl.models.transformer import Transformer
from icl.tasks.prompts import GramPrompt, TokenPrompt


class LinearTransformer(Transformer):
    """A model whose `predict(prompt)` returns (R, B) predictions for either kind of prompt its path can
    read. Weights that do not exist yet are initialised, one replica for each of `seeds`."""

    parametrization: Parametrization

    def __init__(
        self,
        parametrization: Parametrization,
        path: str | None = None,
        activation: str | None = None,
        seeds: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.parametrization = parametrization
        if seeds is not None or next(parametrization.parameters(), None) is None:
            std = parametrization.init_std
            given = seeds if seeds is not None else range(len(std) if isinstance(std, list) else 1)
            parametrization.initialise(given, torch.get_default_dtype())
        self.path = one_of("model.path", path or parametrization.path, PATHS)
        self.activation = one_of(
            "model.activation", activation or parametrization.activation, tokens.ACTIVATIONS
        )
        if self.path == "gram" and self.activation != "identity":
            raise InputError(f"model.activation={self.activation} has no Gram form: set model.path=tokens")

    def on(self, parametrization: Parametrization) -> Self:
        return type(self)(parametrization, self.path, self.activation)

    def predict(self, prompt: GramPrompt | TokenPrompt) -> Tensor:
        if isinstance(prompt, GramPrompt):
            if self.activation != "identity":
                raise ValueError(f"activation {self.activation} needs token prompts")
            if not self.parametrization.mask:
                prompt = prompt.with_query()
            last_RB = self.last_entry(batch_last(prompt.gram_RBPP), batch_last(prompt.query_RBP))
        else:
            family = self.parametrization
            context_RBNP, query_RBP = family.embedded(prompt.context_RBNP), family.embedded(prompt.query_RBP)
            (P, Q), (read_in_RPP, output_RP) = family.stack(), family.io_maps()
            if read_in_RPP is not None:
                query_RBP = query_RBP @ read_in_RPP.mT
            out_RBP = tokens.stack_forward(P, Q, context_RBNP, query_RBP, self.activation, family.mask)
            last_RB = out_RBP[..., -1] if output_RP is None else (out_RBP * output_RP[:, None]).sum(-1)
        return prompt.read_out * last_RB

    def last_entry(self, gram_RPPB: Tensor, query_RPB: Tensor) -> Tensor:
        """Return what the stack makes of the query, for prompts with the batch axis last. Without a mask the
        query is in the Gram matrix (GramPrompt.with_query)."""
        if self.parametrization.sparse:
            return gram.sparse_forward(*self.parametrization.sparse_weights(), gram_RPPB, query_RPB)
        return self.parametrization.columns(gram_RPPB, query_RPB[:, :, None])[:, 0]

    def risk_given_gram(
        self, S_REEB: Tensor, label_root_REK: Tensor, query_root_RED: Tensor, *, read_out: int
    ) -> Tensor:
        """Risk of a sparse stack given each context, task and query integrated out: (R, B)."""
        weights = self.parametrization.sparse_weights()
        return gram.sparse_expected_risk(*weights, S_REEB, label_root_REK, query_root_RED, read_out)

    def risk_given_task(
        self, gram_RPPB: Tensor, w_RDB: Tensor, query_root_RPK: Tensor, *, read_out: int
    ) -> Tensor:
        """Risk of any stack given each context and task, the query integrated out: (R, B)."""
        columns_RPKB = query_root_RPK[..., None].expand(-1, -1, -1, gram_RPPB.shape[-1])
        out_RKB = self.parametrization.columns(gram_RPPB, columns_RPKB)
        return gram.query_risk(out_RKB, w_RDB, query_root_RPK, read_out)
