"""Encoders over tokens as giannou's section 6 trains them: full attention, linear or softmax, with or without
LayerNorm and MLP, read at the query token.

Pre-norm blocks, h <- h + attention(LN h), then h <- h + MLP(LN h); scores are divided by the root of a head's
width, by nothing else. A token enters as (x, y, 1) through a linear read-in. Nothing but the query token is
ever read, so that the last layer moves the query token alone.

R replicas, B prompts, N context tokens (M = N + 1 with the query), D covariates, W width, H heads of width E,
X hidden units, L layers, K numbers read out.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from icl.errors import InputError, one_of, real, whole
from icl.models.batched import prompts_at_a_time
from icl.models.matrices import Matrices
from icl.models.transformer import Transformer
from icl.tasks.prompts import TokenPrompt

ATTENTIONS = ("linear", "softmax")
NORMS = ("none", "layer")
READS = ("label", "parameter")
OF_LAYERS = ("query", "key", "value", "merge", "up", "down", "gain")
MAX_WIDTH = 8192
NORM_EPS = 1e-5  # torch's own, under the root


class EncoderMatrices(Matrices):
    """The matrices of an encoder. Gains of norms are stored less 1, so that zero is none."""

    def __init__(
        self,
        dim: int,
        layers: int,
        width: int,
        heads: int,
        hidden: int,
        normalised: bool,
        outputs: int,
        init_std: float | Sequence[float],
    ) -> None:
        super().__init__(dim, layers, init_std)
        self.width, self.heads, self.hidden = width, heads, hidden
        self.normalised, self.outputs = normalised, outputs

    def shapes(self) -> dict[str, tuple[int, ...]]:
        L, W, X = self.layers, self.width, self.hidden
        found: dict[str, tuple[int, ...]] = {"read_in": (1, W, self.dim + 2)}
        found |= dict.fromkeys(("query", "key", "value", "merge"), (L, W, W))
        if X:
            found |= {"up": (L, X, W), "down": (L, W, X)}
        if self.normalised:
            found["gain"] = (L, 1 if X == 0 else 2, W)  # before attention, before the MLP
            found["last_gain"] = (1, 1, W)
        return found | {"read_out": (1, self.outputs, W)}

    def spread(self, name: str) -> float:
        """Gains begin at 1; what adds to the residual stream is smaller the more often it is added to."""
        if name in ("gain", "last_gain"):
            return 0.0
        additions = self.layers * (2 if self.hidden else 1)
        return additions**-0.5 if self.normalised and name in ("merge", "down") else 1.0


class Encoder(Transformer):
    """`reads`: the label of the query, or the D numbers of a linear parameter w, which predicts <w, x_query>.

    `mask`: the query token is nobody's key, not its own. `clip` bounds every entry after each layer.
    """

    path = "tokens"
    activation = "encoder"
    parametrization: EncoderMatrices

    def __init__(
        self,
        dim: int,
        layers: int = 2,
        width: int = 32,
        heads: int = 4,
        attention: str = "softmax",
        norm: str = "layer",
        hidden: int = 128,
        clip: float | None = None,
        mask: bool = False,
        reads: str = "label",
        init_std: float | Sequence[float] = 0.02,
    ) -> None:
        super().__init__()
        self.attention = one_of("model.attention", attention, ATTENTIONS)
        self.norm = one_of("model.norm", norm, NORMS)
        self.clip = None if clip is None else real("model.clip", clip, 0, open_low=True)
        if not isinstance(mask, bool):
            raise InputError(f"model.mask={mask}: must be true or false")
        self.mask, self.reads = mask, one_of("model.reads", reads, READS)
        whole("model.heads", heads, 1)
        if whole("model.width", width, 1, MAX_WIDTH) % heads:
            raise InputError(f"model.width={width}: must be a multiple of model.heads={heads}")
        self.parametrization = EncoderMatrices(
            dim,
            layers,
            width,
            heads,
            whole("model.hidden", hidden, 0, 8 * MAX_WIDTH),
            self.norm == "layer",
            dim if self.reads == "parameter" else 1,
            init_std,
        )

    def on(self, parametrization: EncoderMatrices) -> Self:
        other = type(self).__new__(type(self))
        other.__dict__ = self.__dict__ | {"_modules": {"parametrization": parametrization}}
        return other

    def predict(self, prompt: Any) -> Tensor:
        out_RBK = self.read(prompt)
        if self.reads == "label":
            return out_RBK[..., 0]
        return (out_RBK * prompt.query_RBP[..., :-1]).sum(-1)

    def read(self, prompt: TokenPrompt) -> Tensor:
        """Return what is read at the query token, (R, B, K): the label, or the parameter."""
        if not isinstance(prompt, TokenPrompt):
            raise ValueError("an encoder needs token prompts")
        R, _, N, _ = prompt.context_RBNP.shape
        pieces = prompt.split(prompts_at_a_time(prompt.query_RBP, R * (N + 1) * self.parametrization.width))
        return torch.cat([self._read(piece) for piece in pieces], dim=1)

    def _read(self, prompt: TokenPrompt) -> Tensor:
        family = self.parametrization
        by_layer = {name: stack.unbind(1) for name, stack in family.matrices().items()}
        z_RBMP = torch.cat([prompt.context_RBNP, prompt.query_RBP[:, :, None]], dim=2)
        h_RBMW = apply(by_layer["read_in"][0], F.pad(z_RBMP, (0, 1), value=1.0))
        for layer in range(family.layers):
            of_layer = {name: by_layer[name][layer] for name in by_layer if name in OF_LAYERS}
            moved = slice(-1, None) if layer + 1 == family.layers else slice(None)
            h_RBMW = self._layer(of_layer, h_RBMW, moved)
        if family.normalised:
            h_RBMW = _normalise(h_RBMW, by_layer["last_gain"][0][:, 0])
        return apply(by_layer["read_out"][0], h_RBMW)[:, :, -1]

    def _layer(self, of_layer: Mapping[str, Tensor], h_RBMW: Tensor, moved: slice) -> Tensor:
        """Return the moved tokens after a layer."""
        normed_RBMW = _normalise(h_RBMW, of_layer["gain"][:, 0]) if "gain" in of_layer else h_RBMW
        h_RBMW = h_RBMW[:, :, moved] + self._attend(of_layer, normed_RBMW, moved)
        if "up" in of_layer:
            normed_RBMW = _normalise(h_RBMW, of_layer["gain"][:, 1]) if "gain" in of_layer else h_RBMW
            h_RBMW = h_RBMW + apply(of_layer["down"], F.gelu(apply(of_layer["up"], normed_RBMW)))
        return h_RBMW if self.clip is None else h_RBMW.clamp(-self.clip, self.clip)

    def _attend(self, of_layer: Mapping[str, Tensor], all_RBMW: Tensor, moved: slice) -> Tensor:
        """Return what the moved tokens get from all, or from the context where the query is masked."""
        keys_RBMW, moved_RBMW = all_RBMW[:, :, :-1] if self.mask else all_RBMW, all_RBMW[:, :, moved]
        both_RXW = torch.cat([of_layer["key"], of_layer["value"]], dim=1)
        k_RBMW, v_RBMW = apply(both_RXW, keys_RBMW).chunk(2, dim=-1)
        q_RBMW = apply(of_layer["query"], moved_RBMW)
        q_QHME, k_QHME, v_QHME = (self._by_head(t_RBMW) for t_RBMW in (q_RBMW, k_RBMW, v_RBMW))
        if self.attention == "softmax":
            out_QHME = F.scaled_dot_product_attention(q_QHME, k_QHME, v_QHME)
        else:  # keys and values first: E x E, whatever the number of tokens
            out_QHME = q_QHME @ (k_QHME.mT @ v_QHME) * q_QHME.shape[-1] ** -0.5
        return apply(of_layer["merge"], out_QHME.transpose(1, 2).reshape(moved_RBMW.shape))

    def _by_head(self, t_RBMW: Tensor) -> Tensor:
        """(Q, H, M, E): Q = R B prompts of all replicas, one head after another."""
        return t_RBMW.flatten(0, 1).unflatten(-1, (self.parametrization.heads, -1)).transpose(1, 2)


def apply(M_RIJ: Tensor, t_RBMJ: Tensor) -> Tensor:
    """M t for every token of a replica: a single matrix product."""
    return (t_RBMJ.flatten(1, 2) @ M_RIJ.mT).unflatten(1, t_RBMJ.shape[1:3])


def _normalise(h_RBMW: Tensor, gain_RW: Tensor) -> Tensor:
    return F.layer_norm(h_RBMW, h_RBMW.shape[-1:], eps=NORM_EPS) * (1 + gain_RW[:, None, None])
