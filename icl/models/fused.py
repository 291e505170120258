"""A risk through the compiled kernel (icl.kernel), if it is installed and can run the model."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from icl.kernel import library
from icl.kernel.fused import Fused
from icl.kernel.recording import NotRecordable
from icl.models.transformer import Transformer

Risk = Callable[[Any, Any], Tensor]  # of a model on a draw: (R,) means over the prompts
PROMPTS = 3  # on which a recording is compared with what it was made of
TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-8}


def fused_risk(risk: Risk, model: Transformer, draw: Mapping[str, Tensor]) -> Risk:
    """Return `risk` of models like this one on draws like this one. Raises NotRecordable, with the reason."""
    fused, names, prompts = record_risk(risk, model, draw), list(model.parametrization.shapes()), list(draw)

    def through_the_kernel(model: Any, draw: Mapping[str, Tensor]) -> Tensor:
        matrices = model.parametrization.matrices()
        return fused({name: matrices[name] for name in names}, {name: draw[name] for name in prompts})

    return through_the_kernel


def record_risk(risk: Risk, model: Transformer, draw: Mapping[str, Tensor]) -> Fused:
    """Return the kernel's program of `risk`, a function of the model's matrices and the draw."""
    family = model.parametrization
    names = list(family.shapes())
    weights = {name: family.matrices()[name].detach() for name in names}
    if not draw:
        raise NotRecordable("nothing is drawn")
    if (reason := library.why_none()) is not None:
        raise NotRecordable(f"no kernel: {reason}")
    if any(t.device.type != "cpu" or t.dtype not in TOLERANCE for t in (*weights.values(), *draw.values())):
        raise NotRecordable("only float32 and float64 on the CPU")

    def of(weights: Mapping[str, Any], drawn: Mapping[str, Any]) -> Any:
        return risk(model.on(family.sharing([weights[name] for name in names])), drawn)

    fused = Fused(of, weights, draw)
    _compare(fused, of, weights, {name: tensor[..., :PROMPTS] for name, tensor in draw.items()})
    return fused


def _compare(
    fused: Fused, function: Callable[..., Tensor], weights: Mapping[str, Tensor], draw: Mapping[str, Tensor]
) -> None:
    """Raise NotRecordable if both differ: a function may depend on what a recording cannot see."""
    expected, found = function(weights, draw), fused(weights, draw)
    bound = TOLERANCE[expected.dtype] * expected.abs().amax()
    if torch.isfinite(expected).all() and not ((found - expected).abs() <= bound).all():
        raise NotRecordable("on the first prompts the recorded program and the function differ")
