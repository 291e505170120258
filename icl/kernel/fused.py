"""A recorded function as torch sees it: means over prompts, and their gradient, in one pass of the kernel."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from icl.kernel.library import Header, instruction_sets, library
from icl.kernel.recording import record

MeanOverPrompts = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]


class Fused:
    """`function(weights, prompts)` through the kernel, for tensors of the shapes it was recorded with and any
    number of prompts. Weights are (R, ...), prompts (R, ..., B); the function returns (R,) means over the
    prompts, of which the gradient in the weights is known. `instructions`: the widest by default."""

    def __init__(
        self,
        function: MeanOverPrompts,
        weights: Mapping[str, Tensor],
        prompts: Mapping[str, Tensor],
        instructions: str | None = None,
    ) -> None:
        self.recording = record(function, weights, prompts)
        self.code = self.recording.program.code()
        names = instruction_sets()
        self.instructions = len(names) - 1 if instructions is None else names.index(instructions)
        self._arrays = [np.ascontiguousarray(a) for a in (self.code.ops, self.code.inputs, self.code.lists)]
        ops, inputs, lists = (array.ctypes.data for array in self._arrays)
        code = self.code
        self._header = Header(
            ops, inputs, lists, len(code.ops), len(code.inputs), code.n_slots, code.n_prologue,
            code.n_persistent, code.zeros, code.n_zeros, code.result, code.n_gradient,
        )  # fmt: skip

    def __call__(self, weights: Mapping[str, Tensor], prompts: Mapping[str, Tensor]) -> Tensor:
        given = list(prompts.values()), *weights.values()
        found: Tensor = _Means.apply(self, *given)  # type: ignore[no-untyped-call]
        return found

    def run(
        self, weights: Sequence[Tensor], prompts: Sequence[Tensor], with_gradient: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the (R,) means and, for each of the weights, the gradient of each replica's mean."""
        recording = self.recording
        tensors = self._inputs(weights, prompts)
        R, batch, dtype = recording.replicas, prompts[0].shape[-1], recording.dtype
        means = np.empty(R)
        gradient = np.empty((R, self.code.n_gradient)) if with_gradient else None
        into = None if gradient is None else gradient.ctypes.data
        data = (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
        failed = library().icl_kernel_run(
            ctypes.byref(self._header), self.instructions, int(dtype == torch.float32),
            torch.get_num_threads(), R, batch, data, means.ctypes.data, into,
        )  # fmt: skip
        if failed:
            raise MemoryError(f"the kernel found no room for {self.code.n_slots} matrix entries of a tile")
        gradients: list[Tensor] = []
        if gradient is not None:
            parts = np.split(gradient, np.cumsum([w[0].numel() for w in weights])[:-1], axis=1)
            gradients = [
                torch.from_numpy(part).to(dtype).reshape(w.shape)
                for part, w in zip(parts, weights, strict=True)
            ]
        return torch.from_numpy(means).to(dtype), gradients

    def _inputs(self, weights: Sequence[Tensor], prompts: Sequence[Tensor]) -> list[Tensor]:
        """Return the inputs in the program's order, each contiguous and of the recorded size."""
        recording = self.recording
        given = iter([*weights, *prompts])
        tensors = []
        for number, expected in enumerate(recording.program.inputs):
            tensor = recording.constants[number] if number in recording.constants else next(given)
            size = tensor[0].numel() // (tensor.shape[-1] if expected.per_prompt else 1)
            same = (len(tensor), tensor.dtype, size) == (recording.replicas, recording.dtype, expected.size)
            alike = not expected.per_prompt or tensor.shape[-1] == prompts[0].shape[-1]
            if not (same and alike) or tensor.device.type != "cpu":
                raise ValueError(f"a tensor of shape {tuple(tensor.shape)}, other than was recorded")
            tensors.append(tensor.detach().contiguous())
        return tensors


class _Means(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, fused: Fused, prompts: Sequence[Tensor], *weights: Tensor) -> Tensor:
        means_R, gradients = fused.run(weights, prompts, any(ctx.needs_input_grad[2:]))
        ctx.save_for_backward(*gradients)
        return means_R

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad_R,) = grads
        return (
            None,
            None,
            *(gradient * grad_R.view(-1, *[1] * (gradient.ndim - 1)) for gradient in ctx.saved_tensors),
        )
